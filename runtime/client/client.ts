/** Typed clients. The functions of a client, one per method, are made once when the client is made. */
import type { ServiceDefinition } from '../codec/types.ts';
import { checkedInterceptors, type Interceptor } from '../core/interceptor.ts';
import { checkNames } from '../core/options.ts';
import type { Client, ClientDefaults } from '../core/types.ts';
import { callFunction } from './call/call-function.ts';
import { checkHedgingFits, type Defaults, defaultsOf, withDefaults } from './call/client-defaults.ts';
import { clientMethod } from './call/client-method.ts';
import type { ClientMethodFunction } from './call/intercepted-call.ts';
import { type ClientChannel, clientChannel } from './channel.ts';
import type { Channel } from './channel-type.ts';
import { belowDefaults, configuredCall, shorterMs } from './config/configured-call.ts';
import type { MethodSettings } from './config/service-config.ts';
import { withMessageLimits } from './config/sized-messages.ts';

/** Returns the interceptors of a method, the outermost first. */
function interceptorsOf(
  what: string,
  defaults: Defaults,
  name: string,
  channel: ClientChannel,
): Interceptor[] {
  const ofClient = ['*', name].flatMap((key) =>
    checkedInterceptors(`${what}: interceptors of ${key}`, defaults[key]?.interceptors),
  );
  return [...channel.interceptors, ...ofClient];
}

/**
 * Creates a client of `definition` that makes its calls over `channel`. `defaults` has call options for all
 * methods (`*`) or for single methods, by their names. The application must not change a request object until
 * the call has settled. Throws for unknown method or option names.
 */
export function createClient<D extends ServiceDefinition>(
  definition: D,
  channel: Channel,
  defaults: ClientDefaults<D> = {},
): Client<D> {
  const what = `createClient ${definition.fullName}`;
  const through = clientChannel(what, channel);
  checkNames(what, defaults, ['*', ...Object.keys(definition.methods)]);
  checkHedgingFits(what, defaults as Defaults, Object.entries(definition.methods));
  const client: Record<string, unknown> = {};
  for (const [name, method] of Object.entries(definition.methods)) {
    const make = (settings: MethodSettings | undefined): ClientMethodFunction => {
      const below = belowDefaults(settings, defaults as Defaults, name);
      const { timeoutMs, waitForReady, idempotent, others } = defaultsOf(what, below, name, method);
      const limitMs = shorterMs(timeoutMs ?? through.defaultTimeoutMs, settings?.timeoutMs);
      const plain = clientMethod(method, limitMs, waitForReady, idempotent, through.warn);
      const target = withMessageLimits(plain, settings);
      const interceptors = interceptorsOf(what, defaults as Defaults, name, through);
      const call = callFunction(through, definition, method, target, interceptors);
      return others === undefined ? call : withDefaults(call, others, interceptors.length === 0);
    };
    const { config } = through;
    client[name] = config === undefined ? make(undefined) : configuredCall(config, method.fullName, make);
  }
  return Object.freeze(client) as Client<D>;
}
