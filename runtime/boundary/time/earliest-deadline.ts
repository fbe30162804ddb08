/**
 * One timer for many deadlines: it wakes up for the earliest one, so that what ends in time costs a
 * comparison. Owned by the calls of a session and by the calls that wait for one, on their JS thread.
 */
import { deadlines } from './deadlines.ts';
import type { DeadlineOwner } from './timer-wheel.ts';

const noTimer = -1;

export interface DeadlinesOwner {
  /**
   * Ends what `deadlines.now` has passed; the earliest deadline that there was may belong to something that
   * has ended long since. Returns the earliest of the rest, Infinity for none.
   */
  onDeadlines(): number;
}

export class EarliestDeadline implements DeadlineOwner {
  readonly #owner: DeadlinesOwner;
  #timer = noTimer;
  #timerMs = Infinity;
  /** The turn that the timer was set in. */
  #turn = 0;

  constructor(owner: DeadlinesOwner) {
    this.#owner = owner;
  }

  /** There is this one, too. */
  add(deadlineMs: number): void {
    if (deadlineMs >= this.#timerMs) return;
    this.stop();
    this.#timerMs = deadlineMs;
    this.#turn = deadlines.turn;
    this.#timer = deadlines.add(deadlineMs, this, 0);
  }

  /** For nobody any more, until the next is added. */
  stop(): void {
    if (this.#timer !== noTimer) deadlines.remove(this.#timer);
    this.#timer = noTimer;
    this.#timerMs = Infinity;
  }

  /** The wheel has moved a timer of this turn: a deadline between that and now needs another one. */
  onLongTurn(lagMs: number): void {
    if (this.#turn === deadlines.turn) this.#timerMs += lagMs;
  }

  onDeadline(): void {
    this.#timer = noTimer;
    this.#timerMs = Infinity;
    this.add(this.#owner.onDeadlines());
  }
}
