/** Typed clients: one function per method, made once when the client is made. */
import { clientMethod } from '../call/client-method.ts';
import type { ServiceDefinition } from '../codec/types.ts';
import { Channel } from './channel.ts';
import { openStream } from './open-stream.ts';
import { checkedTimeMs, checkNames } from './options.ts';
import type { CallOptions, ClientDefaults, ClientOf, StreamOptions } from './types.ts';

type Defaults = Readonly<Record<string, Pick<CallOptions, 'timeoutMs'> | undefined>>;

function defaultTimeoutMs(what: string, defaults: Defaults, name: string, channelMs: number): number {
  for (const key of [name, '*']) {
    const given = defaults[key];
    if (given === undefined) continue;
    checkNames(`${what}: defaults of ${key}`, given, ['timeoutMs']);
    if (given.timeoutMs !== undefined) return checkedTimeMs(`${what}: timeoutMs of ${key}`, given.timeoutMs);
  }
  return channelMs;
}

/**
 * A client of `definition` over `channel`. `defaults` has call options for all methods (`*`) or for one, by its name. Request objects
 * belong to the call until it settles. Throws for unknown method or option names.
 */
export function createClient<D extends ServiceDefinition>(
  definition: D,
  channel: Channel,
  defaults: ClientDefaults<D> = {},
): ClientOf<D> {
  const what = `createClient ${definition.fullName}`;
  if (!(channel instanceof Channel)) throw new TypeError(`${what}: the second argument must be a channel`);
  checkNames(what, defaults, ['*', ...Object.keys(definition.methods)]);
  const client: Record<string, unknown> = {};
  for (const [name, method] of Object.entries(definition.methods)) {
    const timeoutMs = defaultTimeoutMs(what, defaults as Defaults, name, channel.defaultTimeoutMs);
    const target = clientMethod(method, timeoutMs);
    client[name] =
      method.requestStream || method.responseStream
        ? (request: unknown, options?: StreamOptions) => openStream(channel.streams, target, request, options)
        : (request: unknown, options?: CallOptions) => channel.unary(target, request, options);
  }
  return Object.freeze(client) as ClientOf<D>;
}
