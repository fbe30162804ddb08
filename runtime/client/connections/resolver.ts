/**
 * The interface of a source of addresses: DNS (resolvers/), or one of the application (etcd, Consul, a file).
 * Called by resolution.ts, in the root context of its thread.
 */
import type { ServerAddress } from './servers.ts';

/** Tells a channel which addresses currently serve it. */
export interface Resolver {
  /**
   * Returns the addresses, each `host:port`, `[ipv6]:port` or `unix:/path`, or an object with one and its
   * weight; their order matters to `pick-first` alone. Called when the channel connects, and again when a
   * connection was lost. A rejection or an empty list counts as a failed attempt to connect; addresses that
   * are known by then stay in use, marked as stale. `signal` is aborted when the answer takes too long.
   */
  resolve(signal: AbortSignal): Promise<readonly (string | ServerAddress)[]>;
  /**
   * Optional; called once. `onChange` takes the new list; without one it makes the channel resolve again at
   * once. A list that is empty or has an invalid address counts as a failed answer. Returns a function that
   * stops watching.
   */
  watch?(onChange: (servers?: readonly (string | ServerAddress)[]) => void): () => void;
}
