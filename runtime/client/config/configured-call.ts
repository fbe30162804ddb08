/**
 * Methods of clients whose defaults come from a service configuration and from the application. The
 * application's defaults take precedence. They are made again when the configuration has changed.
 * `createClient` uses this file.
 */
import type { CallOptions, MethodDefaults } from '../../core/types.ts';
import type { Defaults } from '../call/client-defaults.ts';
import type { ClientMethodFunction } from '../call/intercepted-call.ts';
import type { ChannelConfig } from './channel-config.ts';
import { type MethodSettings, settingsOf } from './service-config.ts';

/**
 * Returns a method that calls `make` for each configuration. The first call is made now, so that its errors
 * reach the caller.
 */
export function configuredCall(
  config: ChannelConfig,
  path: string,
  make: (settings: MethodSettings | undefined) => ClientMethodFunction,
): ClientMethodFunction {
  let version = -1;
  let call: ClientMethodFunction;
  const refresh = (): void => {
    version = config.version;
    const settings = config.current && settingsOf(config.current, path);
    call = withLimit(make(settings), settings?.timeoutMs);
  };
  refresh();
  return (request, options) => {
    if (version !== config.version) refresh();
    return call(request, options);
  };
}

/** Returns the shorter of both times, as gRPC does; -1 stands for no time. */
export function shorterMs(ownMs: number, limitMs: number | undefined): number {
  if (limitMs === undefined) return ownMs;
  return ownMs < 0 ? limitMs : Math.min(ownMs, limitMs);
}

function withLimit(call: ClientMethodFunction, limitMs: number | undefined): ClientMethodFunction {
  if (limitMs === undefined) return call;
  return (request, options) => {
    const given = (options as CallOptions | undefined)?.timeoutMs;
    if (given === undefined || !(given > limitMs)) return call(request, options);
    return call(request, { ...options, timeoutMs: limitMs });
  };
}

/**
 * Returns the defaults of a client, completed by those of the configuration. If the application sets `retry`
 * or `hedging`, both settings of the configuration are ignored.
 */
export function belowDefaults(settings: MethodSettings | undefined, given: Defaults, name: string): Defaults {
  if (settings === undefined) return given;
  const { retry, hedging, waitForReady } = settings;
  const own = [given['*'], given[name]];
  const repeats = own.some((each) => each?.retry !== undefined || each?.hedging !== undefined);
  const configured: MethodDefaults = {
    ...(waitForReady !== undefined && { waitForReady }),
    ...(!repeats && retry && { retry }),
    ...(!repeats && hedging && { hedging }),
  };
  return { ...given, '*': { ...configured, ...given['*'] } };
}
