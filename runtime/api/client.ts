/** Typed clients: one function per method, made once when the client is made. */
import { clientMethod } from '../call/client-method.ts';
import type { ServiceDefinition } from '../codec/types.ts';
import { Channel } from './channel.ts';
import { openStream } from './open-stream.ts';
import { checkedTimeMs, checkNames } from './options.ts';
import type { CallOptions, ClientDefaults, ClientOf, MethodDefaults, StreamOptions } from './types.ts';

type Defaults = Readonly<Record<string, MethodDefaults | undefined>>;

const names: readonly (keyof MethodDefaults)[] = ['timeoutMs', 'waitForReady'];

/** What holds for a method: its own entry goes before that of all, option by option. */
function defaultsOf(what: string, defaults: Defaults, name: string): MethodDefaults {
  for (const key of ['*', name]) {
    const given = defaults[key];
    if (given === undefined) continue;
    checkNames(`${what}: defaults of ${key}`, given, names);
    const { timeoutMs, waitForReady } = given;
    if (timeoutMs !== undefined) checkedTimeMs(`${what}: timeoutMs of ${key}`, timeoutMs);
    if (waitForReady !== undefined && typeof waitForReady !== 'boolean')
      throw new TypeError(`${what}: waitForReady of ${key} is true or false`);
  }
  return { ...defaults['*'], ...defaults[name] };
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
    const { timeoutMs, waitForReady } = defaultsOf(what, defaults as Defaults, name);
    const target = clientMethod(method, timeoutMs ?? channel.defaultTimeoutMs, waitForReady);
    client[name] =
      method.requestStream || method.responseStream
        ? (request: unknown, options?: StreamOptions) => openStream(channel.streams, target, request, options)
        : (request: unknown, options?: CallOptions) => channel.unary(target, request, options);
  }
  return Object.freeze(client) as ClientOf<D>;
}
