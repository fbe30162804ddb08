/**
 * A resolver whose source is watched. It lists the servers, and then pushes each change. The resolvers of
 * etcd and Kubernetes use this file in the root context, on the JS thread of their channels. One watch serves
 * all channels that have the same resolver. While the source fails, `resolve` rejects, so that the channels
 * mark their servers as stale and keep them.
 */

import { Backoff } from '../client/connections/backoff.ts';
import { Paced } from '../client/connections/paced.ts';
import type { Resolver } from '../client/connections/resolver.ts';
import { checkedServers, type Server, type ServerAddress } from '../client/connections/servers.ts';
import { clockMs } from '../clock.ts';
import { inRoot } from '../core/scopes.ts';
import * as limits from './limits.ts';

type Servers = readonly ServerAddress[];
type Listener = Parameters<NonNullable<Resolver['watch']>>[0];

/**
 * Follows a source: calls `onServers` when the complete list is known to be current, and after each change.
 * The argument of `onServers` is a function that returns the list. Several changes may be reported by a
 * single call. Rejects when the source has failed or `signal` is aborted.
 */
export type Follow = (onServers: (list: () => Servers) => void, signal: AbortSignal) => Promise<never>;

/** Resolves after `ms`, or when `signal` is aborted. The timer does not keep the process alive. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    timer.unref();
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}

/**
 * Pauses between attempts to reach a registry. The pauses have a random part, because all clients lose the
 * registry at the same time.
 */
export const registryBackoff = (): Backoff => {
  const { first, max } = limits.registryPauseMs;
  return new Backoff(first, max, Math.random, true);
};

/**
 * Returns the server of one entry of a registry, or undefined for an entry with an invalid address, weight,
 * zone or attribute. Such an entry must not make the other entries unusable.
 */
export function usable(entry: ServerAddress): Server | undefined {
  try {
    return checkedServers('', [entry])[0];
  } catch {
    return undefined;
  }
}

class Watched implements Resolver {
  readonly #makeFollow: () => Follow;
  readonly #listeners = new Set<Listener>();
  /** Ends the watch; undefined while no channel watches. */
  #running: AbortController | undefined;
  /** The last list; undefined before the first list has come. */
  #servers: Servers | undefined;
  /** The reason why the source cannot be followed now; undefined while it can be followed. */
  #fault: { readonly error: unknown } | undefined;
  /** Wakes callers of `resolve` that wait for the first list. */
  #waiting: (() => void)[] = [];

  constructor(makeFollow: () => Follow) {
    this.#makeFollow = makeFollow;
  }

  async resolve(signal: AbortSignal): Promise<Servers> {
    if (this.#running === undefined) return this.#listOnce(signal);
    while (this.#fault === undefined && this.#servers === undefined) {
      signal.throwIfAborted();
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
    if (this.#fault !== undefined) throw this.#fault.error;
    return this.#servers ?? [];
  }

  watch(onChange: Listener): () => void {
    // Each caller gets its own listener, even when it passes the same function twice.
    const listener: Listener = (servers) => onChange(servers);
    this.#listeners.add(listener);
    if (this.#running === undefined) {
      this.#running = new AbortController();
      this.#servers = undefined;
      this.#fault = undefined;
      void inRoot(() => this.#run(this.#running!.signal));
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#running?.abort(new Error('no channel uses this resolver any more'));
      this.#running = undefined;
      this.#wake();
    };
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const backoff = registryBackoff();
    const follow = this.#makeFollow();
    const remaking = registryBackoff();
    let newest: () => Servers;
    let timer: NodeJS.Timeout | undefined;
    const onList = (servers: Servers): number => {
      clearTimeout(timer);
      remaking.reset();
      return this.#current(servers);
    };
    // A list that could not be made does not end the watch, because a new watch would begin with the same
    // list. It is made again after a pause, because a function of the application may then succeed.
    const onFault = (fault: unknown): void => {
      clearTimeout(timer);
      timer = setTimeout(() => paced.changed(newest), remaking.next());
      timer.unref();
      this.#failed(fault);
    };
    const paced = new Paced(onList, onFault);
    const stop = (): void => {
      clearTimeout(timer);
      paced.close();
    };
    signal.addEventListener('abort', stop, { once: true });
    while (!signal.aborted) {
      let followedMs: number | undefined;
      const onChange = (list: () => Servers): void => {
        if (signal.aborted) return;
        followedMs ??= clockMs();
        newest = list;
        paced.changed(list);
      };
      const error = await follow(onChange, signal).catch((cause: unknown) => cause);
      if (signal.aborted) return;
      // A list that still waits to be passed on is older than the end of its watch, and must not hide the
      // failure that ended the watch.
      paced.flush();
      if (followedMs === undefined) this.#failed(error);
      else if (clockMs() - followedMs >= limits.steadyWatchMs) backoff.reset();
      await pause(backoff.next(), signal);
    }
  }

  /** Returns the number of servers. */
  #current(servers: Servers): number {
    this.#servers = servers;
    this.#fault = undefined;
    this.#wake();
    for (const listener of [...this.#listeners]) listener(servers);
    return servers.length;
  }

  /**
   * Records the error, with which `resolve` then rejects. Makes the channels resolve again, because the list
   * may be outdated now.
   */
  #failed(error: unknown): void {
    const first = this.#fault === undefined;
    this.#fault = { error };
    this.#wake();
    if (first) for (const listener of [...this.#listeners]) listener();
  }

  /** Callers without a watch use this function. */
  #listOnce(signal: AbortSignal): Promise<Servers> {
    const done = new AbortController();
    return new Promise<Servers>((resolve, reject) => {
      const onServers = (list: () => Servers): void => resolve(list());
      this.#makeFollow()(onServers, AbortSignal.any([signal, done.signal])).catch(reject);
    }).finally(() => done.abort());
  }
}

/** Creates a resolver that follows a registry. `makeFollow` is called for each watch that begins. */
export function watchedResolver(makeFollow: () => Follow): Resolver {
  return new Watched(makeFollow);
}
