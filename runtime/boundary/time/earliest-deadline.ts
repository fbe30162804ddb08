/**
 * One timer for many deadlines. It fires for the earliest deadline, so that a call that ends in time costs
 * only a comparison. The calls of a session share one such timer, and so do the calls that wait for a
 * session. This file runs on the JS thread of those calls.
 */
import { deadlines } from './deadlines.ts';
import type { DeadlineOwner } from './timer-wheel.ts';

const noTimer = -1;

export interface DeadlinesOwner {
  /**
   * Ends all entries whose deadline is not after `deadlines.now`. There may be no such entry, because the
   * entry with the earliest deadline may have ended long ago. Returns the earliest remaining deadline, or
   * Infinity.
   */
  onDeadlines(): number;
}

export class EarliestDeadline implements DeadlineOwner {
  readonly #owner: DeadlinesOwner;
  #timer = noTimer;
  #timerMs = Infinity;
  /** Number of the turn (deadlines.ts) in which the timer was set. */
  #turn = 0;

  constructor(owner: DeadlinesOwner) {
    this.#owner = owner;
  }

  /** Adds a deadline. */
  add(deadlineMs: number): void {
    if (deadlineMs >= this.#timerMs) return;
    this.stop();
    this.#timerMs = deadlineMs;
    this.#turn = deadlines.turn;
    this.#timer = deadlines.add(deadlineMs, this, 0);
  }

  /** Stops the timer until the next deadline is added. */
  stop(): void {
    if (this.#timer !== noTimer) deadlines.remove(this.#timer);
    this.#timer = noTimer;
    this.#timerMs = Infinity;
  }

  /**
   * The wheel has moved a timer that was set in this turn to a later time. A deadline that is added then and
   * is earlier than this timer needs a timer of its own.
   */
  onLongTurn(lagMs: number): void {
    if (this.#turn === deadlines.turn) this.#timerMs += lagMs;
  }

  onDeadline(): void {
    this.#timer = noTimer;
    this.#timerMs = Infinity;
    this.add(this.#owner.onDeadlines());
  }
}
