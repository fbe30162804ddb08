/**
 * Limits concurrent handshakes. Others queue in order. When others wait, a handshake whose peer has been
 * silent for a moment gives its place to the next one. It goes on beside it, and is evicted only when there
 * are many of its kind and its peer has been silent for long; those that have got least far go first, so a
 * client far away is not taken for one of many strangers who have said hello and no more. Those of
 * suspect addresses (suspects.ts) wait behind the others. A client that would wait too long is told when to
 * come again: such appointments are as far apart as places have come free of late, so that a crowd comes back
 * as it can be served. Used by servers and worker groups.
 */
import { clockMs } from '../../clock.ts';
import { comeAgainIn } from '../../core/errors/pushback.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import {
  comeAgainMsMax,
  handshakeStallMs,
  handshakesCrowd,
  handshakeWaitMs,
  handshakeYieldMs,
} from '../../limits.ts';
import { suspectRanks } from './suspects.ts';

/**
 * More appointments than are likely to be kept, so that a server which has become faster has enough to do.
 */
const hurry = 1.25;

export interface PlacesOwner<T> {
  /**
   * How long this one has been waited for by now, ms, for each round trip that its next message takes; 0
   * while this side is at work.
   */
  awaitedMs(one: T): number;
  /** Messages that have come from it. */
  steps(one: T): number;
  /** Those with a higher one wait behind it: 0 to `suspectRanks - 1`. */
  rank(one: T): number;
  /** It has kept others waiting. Calls `leave`. */
  sendAway(one: T): void;
}

/** One place of so many goes to the last rank that waits: an address may be shared with strangers. */
const lastRankEvery = 4;

/** How fast places come free while others wait for them. */
class Pace {
  /** A guess until there has been a crowd. */
  perMs = 0.5;
  #freed = 0;
  #sinceMs = 0;

  freed(crowded: boolean): void {
    const nowMs = clockMs();
    if (!crowded) this.#freed = 0;
    else if (this.#freed++ === 0) this.#sinceMs = nowMs;
    else if (nowMs - this.#sinceMs >= handshakeStallMs) {
      this.perMs = (this.perMs + (this.#freed - 1) / (nowMs - this.#sinceMs)) / 2;
      this.#freed = 0;
    }
  }
}

/** One, and for how long it has been waited for. */
interface Silent<T> {
  readonly one: T;
  readonly ms: number;
}

/** In how many ms the first of these will have been silent for `ms`. */
function untilAny<T>(those: readonly Silent<T>[], ms: number): number {
  return Math.max(1, ms - those.reduce((longest, each) => Math.max(longest, each.ms), 0));
}

interface Waiter {
  resolve(): void;
  reject(error: RpcError): void;
}

export class Places<T> {
  readonly #max: number;
  readonly #owner: PlacesOwner<T>;
  /** When each has got its place. */
  readonly #served = new Map<T, number>();
  /** Those that have given their place to another and go on without one; when they got it. */
  readonly #yielded = new Map<T, number>();
  /** The handshakes that wait for a place, by the rank of their address. */
  readonly #waiting = Array.from({ length: suspectRanks }, () => new Map<T, Waiter>());
  readonly #pace = new Pace();
  #timer: NodeJS.Timeout | undefined;
  #reading = false;
  /** Places that others waited for. */
  #given = 0;
  /** The last appointment of each rank. */
  readonly #appointmentMs = Array.from({ length: suspectRanks }, () => 0);

  constructor(max: number, owner: PlacesOwner<T>) {
    this.#max = max;
    this.#owner = owner;
  }

  get size(): number {
    return this.#served.size + this.#yielded.size + this.#waits();
  }

  /** Those that wait, up to this rank. */
  #waits(rank = suspectRanks): number {
    let waits = 0;
    for (const queue of this.#waiting.slice(0, rank + 1)) waits += queue.size;
    return waits;
  }

  /**
   * Resolves when it has a place; undefined: it has one. Never when it leaves before. Throws or rejects when
   * too many wait.
   */
  enter(one: T): Promise<void> | undefined {
    if (this.#served.has(one) || this.#yielded.has(one)) return undefined;
    if (this.#served.size < this.#max) {
      this.#served.set(one, clockMs());
      return undefined;
    }
    const rank = this.#owner.rank(one);
    const ahead = this.#waits(rank);
    if (this.#isCrowd(ahead)) throw this.#comeAgain(ahead, rank);
    return new Promise((resolve, reject) => {
      this.#waiting[rank]!.set(one, { resolve, reject });
      this.#trimLast();
      // For this one there may be room sooner.
      if (rank === 0) clearTimeout(this.#timer);
      if ((rank === 0 || this.#timer === undefined) && !this.#reading) this.#makeRoom(false);
    });
  }

  /**
   * One of this rank that was told to come again does not keep to it: those who are told next come that much
   * sooner. Else strangers, who come again at once, would leave the client that comes behind 10,000 of them
   * the last of as many appointments.
   */
  lapse(rank: number): void {
    this.#appointmentMs[rank]! -= this.#apartMs;
  }

  /** It is done, or has gone. */
  leave(one: T): void {
    for (const queue of this.#waiting) queue.delete(one);
    this.#yielded.delete(one);
    if (this.#served.delete(one)) this.#giveNext();
  }

  /**
   * Sends away one that `of` picks and whose peer has been silent for a moment, and returns it: one of those
   * that have come first. Returns undefined when there is none.
   */
  sendAwaySilent(of: (one: T) => boolean): T | undefined {
    const nowMs = clockMs();
    for (const those of [this.#yielded, this.#served]) {
      for (const [one, sinceMs] of those) {
        const ms = Math.min(nowMs - sinceMs, this.#owner.awaitedMs(one));
        if (ms < handshakeYieldMs || !of(one)) continue;
        this.#owner.sendAway(one);
        return one;
      }
    }
    return undefined;
  }

  /** A place has come free. */
  #giveNext(): void {
    const waits = this.#waits() > 0;
    this.#pace.freed(waits);
    if (!waits) return;
    const queues = this.#waiting.filter((queue) => queue.size > 0);
    const queue = ++this.#given % lastRankEvery === 0 ? queues.at(-1)! : queues[0]!;
    const [[next, { resolve }]] = queue as unknown as [[T, Waiter]];
    queue.delete(next);
    this.#served.set(next, clockMs());
    resolve();
  }

  #isCrowd(ahead: number): boolean {
    return ahead / this.#pace.perMs >= handshakeWaitMs || ahead >= this.#max * handshakesCrowd;
  }

  /** The last rank is the first to be too many. */
  #trimLast(): void {
    const waits = this.#waits();
    if (waits <= this.#max * handshakesCrowd) return;
    const rank = this.#waiting.findLastIndex((queue) => queue.size > 0);
    const queue = this.#waiting[rank]!;
    const [[last, { reject }]] = queue as unknown as [[T, Waiter]];
    queue.delete(last);
    reject(this.#comeAgain(waits, rank));
  }

  /** Between two appointments. */
  get #apartMs(): number {
    return 1 / (hurry * this.#pace.perMs);
  }

  #comeAgain(ahead: number, rank: number): RpcError {
    const { perMs } = this.#pace;
    const waitMs = ahead / perMs;
    const nowMs = clockMs();
    const nextMs = Math.max(this.#appointmentMs[rank]!, nowMs + waitMs) + this.#apartMs;
    // Past the longest they begin anew: those who never come must not send the others into the far future.
    this.#appointmentMs[rank] = nextMs - nowMs > comeAgainMsMax ? nowMs : nextMs;
    const retryMs = Math.ceil(Math.min(nextMs - nowMs, comeAgainMsMax));
    return new RpcError(
      Status.RESOURCE_EXHAUSTED,
      `${ahead} handshakes wait for their turn (option handshakesMax of the server); come again in ${retryMs} ms`,
      { processed: 'no', trailer: comeAgainIn(retryMs) },
    );
  }

  /** `read`: what has come by now has been read. */
  #makeRoom(read: boolean): void {
    this.#timer = undefined;
    while (this.#waits() > 0) {
      // Suspects are worth no hurry: most of them come to nothing, and each costs the others time.
      const yieldMs = this.#waits(0) > 0 ? handshakeYieldMs : handshakeStallMs;
      const quiet = this.#silent([this.#served]);
      const ripe = quiet.filter(({ ms }) => ms >= yieldMs);
      if (ripe.length > 0 && !read) {
        // This side may have been at work all that time, and the answer be there already. Timers come before
        // sockets.
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
   * Takes as many places as are needed from `ripe`. Returns 0, or in how many ms there may be room for their
   * handshakes when there is none now.
   */
  #yield(ripe: Silent<T>[]): number {
    const needed = Math.min(ripe.length, this.#waits(0) > 0 ? this.#waits(0) : this.#waits());
    const room = this.#max * handshakesCrowd - this.#yielded.size;
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
   * Sends away this number of those that have been silent for long: the ones that have got least far, and of
   * several the longest. Returns those that it has found.
   */
  #evict(count: number): Silent<T>[] {
    const stalled = this.#silent([this.#served, this.#yielded]).filter(({ ms }) => ms >= handshakeStallMs);
    const steps = ({ one }: Silent<T>): number => this.#owner.steps(one);
    const going = stalled.sort((a, b) => steps(a) - steps(b) || b.ms - a.ms).slice(0, count);
    for (const { one } of going) this.#owner.sendAway(one);
    return going;
  }

  /** For how long each of `those` has been waited for. */
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
