/**
 * Lets TLS with suspect addresses (suspects.ts) begin at a limited rate. A TLS handshake costs the server a
 * signature as soon as it begins, even when its peer never answers. Therefore the slots of the limiter cannot
 * protect the server's thread. An address that connects again and again would use all of the thread's time,
 * and clients of other addresses would not even be accepted. Addresses that are not suspect never wait here.
 * Servers and worker groups use this file.
 */
import { clockMs } from '../../clock.ts';
import { suspectTlsApartMs } from '../../limits.ts';
import { RankedQueue } from './ranked-queue.ts';

export interface SuspectTlsOwner<T> {
  /**
   * Returns the rank of the connection's address, which is 0 for an address that is not suspect. Connections
   * with higher ranks wait behind connections with lower ranks.
   */
  rank(one: T): number;
  /** Closes a connection, which has already been removed. */
  evict(one: T): void;
}

export class SuspectTls<T> {
  readonly #max: number;
  readonly #owner: SuspectTlsOwner<T>;
  /** Waiting connections. Each has a function that lets its TLS handshake begin. */
  readonly #waiting = new RankedQueue<T, () => void>();
  #timer: NodeJS.Timeout | undefined;
  /** The earliest time at which the next connection may begin TLS. */
  #nextMs = 0;

  /** `max` is the limit of waiting connections. */
  constructor(max: number, owner: SuspectTlsOwner<T>) {
    this.#max = max;
    this.#owner = owner;
  }

  /**
   * Calls `begin` when TLS may begin, and returns its result. For an address that is not suspect it calls
   * `begin` at once. The promise never settles when the connection leaves first. Throws or rejects as `begin`
   * does.
   */
  before(one: T, begin: () => Promise<void> | undefined): Promise<void> | undefined {
    const rank = this.#owner.rank(one);
    if (rank === 0) return begin();
    const nowMs = clockMs();
    if (this.#timer === undefined && nowMs >= this.#nextMs) {
      this.#nextMs = nowMs + suspectTlsApartMs;
      return begin();
    }
    const turn = new Promise<void>((resolve) => this.#waiting.add(one, rank, resolve));
    this.#trim();
    this.#timer ??= setTimeout(() => this.#giveNext(), Math.max(1, this.#nextMs - nowMs)).unref();
    return turn.then(begin);
  }

  /** Removes a connection that has ended. */
  leave(one: T): void {
    this.#waiting.delete(one);
  }

  #giveNext(): void {
    this.#timer = undefined;
    const next = this.#waiting.next();
    if (next === undefined) return;
    // The time is counted from now, so that a busy thread does not make up for the starts that it has missed.
    this.#nextMs = clockMs() + suspectTlsApartMs;
    this.#timer = setTimeout(() => this.#giveNext(), suspectTlsApartMs).unref();
    next.waiter();
  }

  /** Closes the oldest connection of the highest rank when too many connections wait. */
  #trim(): void {
    const dropped = this.#waiting.size() > this.#max ? this.#waiting.drop() : undefined;
    if (dropped !== undefined) this.#owner.evict(dropped.one);
  }
}
