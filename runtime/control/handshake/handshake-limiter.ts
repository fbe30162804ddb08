/**
 * Limits concurrent handshakes. When all slots are in use, further handshakes queue in order. While
 * handshakes wait, a handshake whose peer has been silent for a moment yields its slot to the next handshake
 * and continues without a slot. Such a handshake is evicted only when many handshakes have yielded and its
 * peer has been silent for long. Handshakes with the least progress are evicted first. A client far away
 * makes some progress, unlike the many unauthenticated peers that only send a hello. Handshakes from suspect
 * addresses (suspects.ts) wait behind all other handshakes. A client that would wait too long is told when to
 * retry. The retry-after times are spaced at the rate at which slots have recently become free, so that
 * clients return as fast as they can be served. Servers and worker groups use this file.
 */
import { clockMs } from '../../clock.ts';
import { comeAgainIn } from '../../core/errors/pushback.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import {
  handshakeQueueFactor,
  handshakeStallMs,
  handshakeWaitMs,
  handshakeYieldMs,
  retryAfterMsMax,
} from '../../limits.ts';
import { RankedQueue } from './ranked-queue.ts';
import { suspectRanks } from './suspects.ts';

/**
 * Clients get retry-after times that are earlier by this factor than the rate of free slots allows. Therefore
 * a server that becomes faster has enough to do.
 */
const hurry = 1.25;

export interface HandshakeLimiterOwner<T> {
  /**
   * Returns how long the server has waited for this peer: the time in milliseconds, divided by the round
   * trips that the peer's next message takes. Returns 0 while the peer waits for the server.
   */
  awaitedMs(one: T): number;
  /** Returns the number of handshake steps that the peer has completed. */
  steps(one: T): number;
  /**
   * Returns the rank, 0 to `suspectRanks - 1`. Handshakes with a higher rank wait behind handshakes with a
   * lower rank.
   */
  rank(one: T): number;
  /** Closes a handshake to make room for other handshakes. The implementation must call `leave`. */
  evict(one: T): void;
}

/** Measures the rate at which slots become free while handshakes wait. */
class Pace {
  /** Number of slots that become free per ms. The value is a guess until the first overload. */
  perMs = 0.5;
  #freed = 0;
  #sinceMs = 0;

  freed(overloaded: boolean): void {
    const nowMs = clockMs();
    if (!overloaded) this.#freed = 0;
    else if (this.#freed++ === 0) this.#sinceMs = nowMs;
    else if (nowMs - this.#sinceMs >= handshakeStallMs) {
      this.perMs = (this.perMs + (this.#freed - 1) / (nowMs - this.#sinceMs)) / 2;
      this.#freed = 0;
    }
  }
}

/** A handshake, and how long the server has waited for its peer. */
interface Silent<T> {
  readonly one: T;
  readonly ms: number;
}

/** Returns the time in milliseconds until the peer of one of these handshakes has been silent for `ms`. */
function untilAny<T>(those: readonly Silent<T>[], ms: number): number {
  return Math.max(1, ms - those.reduce((longest, each) => Math.max(longest, each.ms), 0));
}

interface Waiter {
  resolve(): void;
  reject(error: RpcError): void;
}

export class HandshakeLimiter<T> {
  readonly #max: number;
  readonly #owner: HandshakeLimiterOwner<T>;
  /** The time at which each handshake got its slot. */
  readonly #served = new Map<T, number>();
  /**
   * Handshakes that have yielded their slot and go on without a slot, with the time at which each had got its
   * slot.
   */
  readonly #yielded = new Map<T, number>();
  /** The handshakes that wait for a slot. */
  readonly #waiting = new RankedQueue<T, Waiter>();
  readonly #pace = new Pace();
  #timer: NodeJS.Timeout | undefined;
  #reading = false;
  /** The last retry-after time of each rank. */
  readonly #retryAtMs = Array.from({ length: suspectRanks }, () => 0);

  constructor(max: number, owner: HandshakeLimiterOwner<T>) {
    this.#max = max;
    this.#owner = owner;
  }

  get size(): number {
    return this.#served.size + this.#yielded.size + this.#waiting.size();
  }

  /**
   * Returns undefined when the handshake has a slot. Otherwise returns a promise that resolves when the
   * handshake gets a slot, and that never settles when the handshake leaves first. Throws or rejects when too
   * many handshakes wait.
   */
  enter(one: T): Promise<void> | undefined {
    if (this.#served.has(one) || this.#yielded.has(one)) return undefined;
    if (this.#served.size < this.#max) {
      this.#served.set(one, clockMs());
      return undefined;
    }
    const rank = this.#owner.rank(one);
    const before = this.#waiting.size(rank);
    if (this.#isOverload(before)) throw this.#retryAfter(before, rank);
    return new Promise((resolve, reject) => {
      this.#waiting.add(one, rank, { resolve, reject });
      this.#trimLast();
      // This handshake may get a slot before the timer fires.
      if (rank === 0) clearTimeout(this.#timer);
      if ((rank === 0 || this.#timer === undefined) && !this.#reading) this.#makeRoom(false);
    });
  }

  /**
   * Runs when a peer of this rank does not keep its retry-after time. The next peers then get earlier times.
   * Otherwise, when 10,000 unauthenticated peers retry at once, the next client would get a time after all of
   * theirs.
   */
  lapse(rank: number): void {
    this.#retryAtMs[rank]! -= this.#apartMs;
  }

  /** Removes a handshake that has ended. */
  leave(one: T): void {
    this.#waiting.delete(one);
    this.#yielded.delete(one);
    if (this.#served.delete(one)) this.#giveNext();
  }

  /**
   * Evicts the oldest handshake that `of` selects and whose peer has been silent for a moment. Returns that
   * handshake, or undefined when there is no such handshake.
   */
  evictSilent(of: (one: T) => boolean): T | undefined {
    const nowMs = clockMs();
    for (const those of [this.#yielded, this.#served]) {
      for (const [one, sinceMs] of those) {
        const ms = Math.min(nowMs - sinceMs, this.#owner.awaitedMs(one));
        if (ms < handshakeYieldMs || !of(one)) continue;
        this.#owner.evict(one);
        return one;
      }
    }
    return undefined;
  }

  /** Gives a free slot to the next handshake. */
  #giveNext(): void {
    const next = this.#waiting.next();
    this.#pace.freed(next !== undefined);
    if (next === undefined) return;
    this.#served.set(next.one, clockMs());
    next.waiter.resolve();
  }

  #isOverload(before: number): boolean {
    return before / this.#pace.perMs >= handshakeWaitMs || before >= this.#max * handshakeQueueFactor;
  }

  /** Refuses handshakes of the highest rank when too many handshakes wait. */
  #trimLast(): void {
    const waits = this.#waiting.size();
    if (waits <= this.#max * handshakeQueueFactor) return;
    const { waiter, rank } = this.#waiting.drop()!;
    waiter.reject(this.#retryAfter(waits, rank));
  }

  /** Milliseconds between two retry-after times. */
  get #apartMs(): number {
    return 1 / (hurry * this.#pace.perMs);
  }

  #retryAfter(before: number, rank: number): RpcError {
    const { perMs } = this.#pace;
    const waitMs = before / perMs;
    const nowMs = clockMs();
    const nextMs = Math.max(this.#retryAtMs[rank]!, nowMs + waitMs) + this.#apartMs;
    // When the limit is reached, the times start again at the current time. Otherwise peers that never return
    // would push the times of other peers far into the future.
    this.#retryAtMs[rank] = nextMs - nowMs > retryAfterMsMax ? nowMs : nextMs;
    const retryMs = Math.ceil(Math.min(nextMs - nowMs, retryAfterMsMax));
    return new RpcError(
      Status.RESOURCE_EXHAUSTED,
      `too many handshakes in progress (server option handshakesMax); retry after ${retryMs} ms`,
      { processed: 'no', trailer: comeAgainIn(retryMs) },
    );
  }

  /**
   * Makes slots free when handshakes wait. `read` is set when everything that has arrived by now has been
   * read.
   */
  #makeRoom(read: boolean): void {
    this.#timer = undefined;
    while (this.#waiting.size() > 0) {
      // Clients from suspect addresses wait longer before they get room. Most of their handshakes fail, and
      // each handshake takes time from other handshakes.
      const yieldMs = this.#waiting.size(0) > 0 ? handshakeYieldMs : handshakeStallMs;
      const quiet = this.#silent([this.#served]);
      const ripe = quiet.filter(({ ms }) => ms >= yieldMs);
      if (ripe.length > 0 && !read) {
        // Read the sockets first. Timers run before sockets are read. This thread may have been busy all that
        // time, and a peer's answer may have arrived already.
        this.#reading = true;
        setImmediate(() => {
          this.#reading = false;
          this.#makeRoom(true);
        });
        return;
      }
      const leftMs = ripe.length === 0 ? untilAny(quiet, yieldMs) : this.#yield(ripe);
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.#makeRoom(false), Math.ceil(leftMs)).unref();
        return;
      }
    }
  }

  /**
   * Takes the needed number of slots from the handshakes in `ripe`. Returns 0 on success. When there is no
   * room for handshakes without a slot, returns the time in milliseconds until there may be room.
   */
  #yield(ripe: Silent<T>[]): number {
    const needed = Math.min(
      ripe.length,
      this.#waiting.size(0) > 0 ? this.#waiting.size(0) : this.#waiting.size(),
    );
    const room = this.#max * handshakeQueueFactor - this.#yielded.size;
    const evicted = room < needed ? this.#evict(needed - room) : [];
    ripe.sort((a, b) => b.ms - a.ms);
    const places = Math.min(needed, room + evicted.length);
    const going = ripe.filter(({ one }) => this.#served.has(one)).slice(0, places);
    if (evicted.length === 0 && going.length === 0)
      return untilAny(this.#silent([this.#served, this.#yielded]), handshakeStallMs);
    for (const { one } of going) {
      this.#yielded.set(one, this.#served.get(one)!);
      this.#served.delete(one);
      this.#giveNext();
    }
    return 0;
  }

  /**
   * Evicts up to `count` handshakes whose peers have been silent for long. Handshakes with the least progress
   * come first and, among equals, those whose peers have been silent for longest. Returns the evicted
   * handshakes.
   */
  #evict(count: number): Silent<T>[] {
    const stalled = this.#silent([this.#served, this.#yielded]).filter(({ ms }) => ms >= handshakeStallMs);
    const steps = ({ one }: Silent<T>): number => this.#owner.steps(one);
    const going = stalled.sort((a, b) => steps(a) - steps(b) || b.ms - a.ms).slice(0, count);
    for (const { one } of going) this.#owner.evict(one);
    return going;
  }

  /** Returns how long the server has waited for each handshake of `those`. */
  #silent(those: readonly ReadonlyMap<T, number>[]): Silent<T>[] {
    const nowMs = clockMs();
    const all: Silent<T>[] = [];
    for (const each of those) {
      for (const [one, sinceMs] of each)
        all.push({ one, ms: Math.min(nowMs - sinceMs, this.#owner.awaitedMs(one)) });
    }
    return all;
  }
}
