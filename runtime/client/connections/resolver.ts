/**
 * The interface of a source of addresses. The source is DNS (resolvers/), or one of the application, such as
 * etcd, Consul or a file. resolution.ts calls these functions in the root context of its thread.
 */
import type { ServerAddress } from './servers.ts';

/** Tells a channel which addresses currently serve it. */
export interface Resolver {
  /**
   * Returns the addresses. Each is `host:port`, `[ipv6]:port` or `unix:/path`, or an object with such an
   * address and its weight. Only `pick-first` depends on their order. Runs when the channel connects, and
   * again when a connection was lost. A rejection or an empty list counts as a failed attempt to connect.
   * Addresses that are already known then stay in use, marked as stale. `signal` is aborted when the answer
   * takes too long.
   */
  resolve(signal: AbortSignal): Promise<readonly (string | ServerAddress)[]>;
  /**
   * Watches the addresses. This method is optional and is called once. `onChange` takes the new list. Without
   * a list, the call makes the channel resolve again at once. A list that is empty or has an invalid address
   * counts as a failed answer. Lists that come fast are combined: after a long list, or one that cannot be
   * used, the next one is used up to half a second later. Returns a function that stops watching.
   */
  watch?(onChange: (servers?: readonly (string | ServerAddress)[]) => void): () => void;
}
