/**
 * Limits concurrent handshakes. Others queue in order. A handshake that makes progress is never evicted; one
 * that stalls is, when others wait, and among those that stall the ones that have got least far go first: a
 * client far away is not taken for one of many strangers who have said hello and no more. Whoever would wait
 * too long is told when to come again: such appointments are as far apart as places have come free of late,
 * so that a crowd comes back as it can be served. Used by servers and worker groups.
 */
import { clockMs } from '../../clock.ts';
import { comeAgainIn } from '../../core/errors/pushback.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { comeAgainMsMax, handshakeStallMs, handshakesCrowd, handshakeWaitMs } from '../../limits.ts';

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

  /**
   * Resolves when it has a place; undefined: it has one. Never when it leaves before. Throws when too many
   * wait.
   */
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
      const { one, longestMs } = this.#stalled();
      if (one === undefined) {
        this.#timer = setTimeout(
          () => this.#makeRoom(false),
          Math.ceil(handshakeStallMs - longestMs),
        ).unref();
        return;
      }
      if (!read) {
        // This side may have been at work all that time, and the answer be there already. Timers come before
        // sockets.
        this.#reading = true;
        setImmediate(() => {
          this.#reading = false;
          this.#makeRoom(true);
        });
        return;
      }
      this.#owner.sendAway(one);
    }
  }

  /**
   * The one that has got least far of those that have stalled, and the longest of several; and how long the
   * longest of all has been waited for.
   */
  #stalled(): { one: T | undefined; longestMs: number } {
    let one: T | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    let oneMs = 0;
    let longestMs = 0;
    const nowMs = clockMs();
    for (const [each, sinceMs] of this.#served) {
      const ms = Math.min(nowMs - sinceMs, this.#owner.awaitedMs(each));
      longestMs = Math.max(longestMs, ms);
      if (ms < handshakeStallMs) continue;
      const steps = this.#owner.steps(each);
      if (steps > fewest || (steps === fewest && ms <= oneMs)) continue;
      one = each;
      fewest = steps;
      oneMs = ms;
    }
    return { one, longestMs };
  }
}
