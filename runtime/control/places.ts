/**
 * Handshakes that are being made: so many at once. The others wait for their turn, in order, and nobody who goes on is sent away for them; only who is waited for
 * in vain makes room. Whoever would wait too long is told when to come again: such appointments are as far apart as places have come free of late, so that a
 * crowd comes back as it can be served. Used by servers and worker groups.
 */
import { clockMs } from '../clock.ts';
import { comeAgainIn } from '../core/errors/pushback.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { comeAgainMsMax, handshakeStallMs, handshakesCrowd, handshakeWaitMs } from '../limits.ts';

/** More appointments than are likely to be kept, so that a server which has become faster has enough to do. */
const hurry = 1.25;

export interface PlacesOwner<T> {
  /** How long this one has been waited for by now, ms, for as long as it has its place at most; 0 while this side is at work. */
  awaitedMs(one: T): number;
  /** It has kept others waiting. Calls `leave`. */
  sendAway(one: T): void;
}

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

export class Places<T> {
  readonly #max: number;
  readonly #owner: PlacesOwner<T>;
  /** When each has got its place. */
  readonly #served = new Map<T, number>();
  readonly #waiting = new Map<T, () => void>();
  readonly #pace = new Pace();
  #timer: NodeJS.Timeout | undefined;
  #reading = false;
  /** The last appointment. */
  #appointmentMs = 0;

  constructor(max: number, owner: PlacesOwner<T>) {
    this.#max = max;
    this.#owner = owner;
  }

  get size(): number {
    return this.#served.size + this.#waiting.size;
  }

  /** Resolves when it has a place; undefined: it has one. Never when it leaves before. Throws when too many wait. */
  enter(one: T): Promise<void> | undefined {
    if (this.#served.has(one)) return undefined;
    if (this.#served.size < this.#max) {
      this.#served.set(one, clockMs());
      return undefined;
    }
    this.#checkCrowd();
    return new Promise((resolve) => {
      this.#waiting.set(one, resolve);
      if (this.#timer === undefined && !this.#reading) this.#makeRoom(false);
    });
  }

  /** It is done, or has gone. */
  leave(one: T): void {
    this.#waiting.delete(one);
    if (!this.#served.delete(one)) return;
    this.#pace.freed(this.#waiting.size > 0);
    for (const [next, resolve] of this.#waiting) {
      this.#waiting.delete(next);
      this.#served.set(next, clockMs());
      resolve();
      return;
    }
  }

  #checkCrowd(): void {
    const { perMs } = this.#pace;
    const waitMs = this.#waiting.size / perMs;
    if (waitMs < handshakeWaitMs && this.#waiting.size < this.#max * handshakesCrowd) return;
    const nowMs = clockMs();
    const nextMs = Math.max(this.#appointmentMs, nowMs + waitMs) + 1 / (hurry * perMs);
    // Past the longest they begin anew: those who never come must not send the others into the far future.
    this.#appointmentMs = nextMs - nowMs > comeAgainMsMax ? nowMs : nextMs;
    const retryMs = Math.ceil(Math.min(nextMs - nowMs, comeAgainMsMax));
    throw new RpcError(
      Status.RESOURCE_EXHAUSTED,
      `${this.#waiting.size} handshakes wait for their turn (option handshakesMax of the server); come again in ${retryMs} ms`,
      { processed: 'no', trailer: comeAgainIn(retryMs) },
    );
  }

  /** `read`: what has come by now has been read. */
  #makeRoom(read: boolean): void {
    this.#timer = undefined;
    while (this.#waiting.size > 0) {
      let longest: T | undefined;
      let longestMs = 0;
      const nowMs = clockMs();
      for (const [one, sinceMs] of this.#served) {
        const ms = Math.min(nowMs - sinceMs, this.#owner.awaitedMs(one));
        if (ms <= longestMs) continue;
        longest = one;
        longestMs = ms;
      }
      if (longest === undefined || longestMs < handshakeStallMs) {
        this.#timer = setTimeout(
          () => this.#makeRoom(false),
          Math.ceil(handshakeStallMs - longestMs),
        ).unref();
        return;
      }
      if (!read) {
        // This side may have been at work all that time, and the answer be there already. Timers come before sockets.
        this.#reading = true;
        setImmediate(() => {
          this.#reading = false;
          this.#makeRoom(true);
        });
        return;
      }
      this.#owner.sendAway(longest);
    }
  }
}
