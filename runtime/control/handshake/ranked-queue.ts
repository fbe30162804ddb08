/**
 * A queue of waiting connections. Connections with a higher rank (suspects.ts) wait behind connections with a
 * lower rank; connections of the same rank are served in order of arrival. handshake-limiter.ts and
 * suspect-tls.ts use this file.
 */
import { suspectRanks } from './suspects.ts';

/**
 * Every fourth turn goes to the highest waiting rank, because a client may share its address with
 * unauthenticated peers.
 */
const lastRankEvery = 4;

interface Waiting<T, W> {
  readonly one: T;
  readonly waiter: W;
  readonly rank: number;
}

export class RankedQueue<T, W> {
  readonly #byRank = Array.from({ length: suspectRanks }, () => new Map<T, W>());
  #turns = 0;

  /** Returns the number of waiting connections whose rank is at most `rank`. */
  size(rank = suspectRanks): number {
    let size = 0;
    for (const queue of this.#byRank.slice(0, rank + 1)) size += queue.size;
    return size;
  }

  add(one: T, rank: number, waiter: W): void {
    this.#byRank[rank]!.set(one, waiter);
  }

  delete(one: T): void {
    for (const queue of this.#byRank) queue.delete(one);
  }

  /** Removes and returns the connection that is next. Returns undefined when no connection waits. */
  next(): Waiting<T, W> | undefined {
    if (this.size() === 0) return undefined;
    const isLast = ++this.#turns % lastRankEvery === 0;
    return this.#take(
      isLast
        ? this.#byRank.findLastIndex((queue) => queue.size > 0)
        : this.#byRank.findIndex((queue) => queue.size > 0),
    );
  }

  /** Removes and returns the oldest connection of the highest rank. Runs when too many connections wait. */
  drop(): Waiting<T, W> | undefined {
    return this.#take(this.#byRank.findLastIndex((queue) => queue.size > 0));
  }

  #take(rank: number): Waiting<T, W> | undefined {
    const queue = this.#byRank[rank];
    if (queue === undefined) return undefined;
    const [[one, waiter]] = queue as unknown as [[T, W]];
    queue.delete(one);
    return { one, waiter, rank };
  }
}
