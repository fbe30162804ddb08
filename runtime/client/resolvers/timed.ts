/**
 * A resolver whose answers are valid for a limited time. When that time is over, the channel resolves again.
 * The timer does not keep the process alive. This file is used for DNS.
 */
import { inRoot } from '../../core/scopes.ts';
import { dnsRefreshMs } from '../connections/limits.ts';
import type { Resolver } from '../connections/resolver.ts';
import type { ServerAddress } from '../connections/servers.ts';

export interface Timed {
  readonly servers: readonly ServerAddress[];
  /** The time for which the answer is valid; Infinity when the source gives no time. */
  readonly ttlMs: number;
}

/**
 * Creates a resolver that repeats its query when the answer has expired. `ask` makes one query to the source.
 */
export function timedResolver(ask: (signal: AbortSignal) => Promise<Timed>): Resolver {
  let again: (() => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
  return {
    async resolve(signal) {
      clearTimeout(timer);
      const { servers, ttlMs } = await ask(signal);
      // `again` is undefined when the channel was closed during the query.
      if (again !== undefined) {
        const { min, max, default: unknown } = dnsRefreshMs;
        const ms = ttlMs === Number.POSITIVE_INFINITY ? unknown : Math.min(Math.max(ttlMs, min), max);
        clearTimeout(timer);
        timer = inRoot(() => setTimeout(again!, ms).unref());
      }
      return servers;
    },
    watch(onChange) {
      again = () => onChange();
      return () => {
        again = undefined;
        clearTimeout(timer);
      };
    },
  };
}
