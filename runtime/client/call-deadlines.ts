/**
 * The deadlines of a session's calls, by call slot: a number each, and one timer for the earliest, so that a call that ends in time costs a store. Owned by
 * a ClientSession, on its JS thread.
 */
import { deadlines } from '../lane/deadlines.ts';
import type { DeadlineOwner, TurnListener } from '../lane/timer-wheel.ts';

const noTimer = -1;

export class CallDeadlines implements DeadlineOwner, TurnListener {
  /** Absolute, ms; 0: none. */
  readonly #deadlineMs: Float64Array;
  /** Turn that the deadline was computed in. */
  readonly #turn: Int32Array;
  readonly #onPassed: (call: number) => void;
  #timer = noTimer;
  #timerMs = Infinity;

  constructor(calls: number, onPassed: (call: number) => void) {
    this.#deadlineMs = new Float64Array(calls);
    this.#turn = new Int32Array(calls);
    this.#onPassed = onPassed;
    deadlines.listeners.add(this);
  }

  /** 0: none. */
  of(call: number): number {
    return this.#deadlineMs[call]!;
  }

  /** Not 0. */
  set(call: number, deadlineMs: number): void {
    this.#deadlineMs[call] = deadlineMs;
    this.#turn[call] = deadlines.turn;
    if (deadlineMs < this.#timerMs) this.#wakeAt(deadlineMs);
  }

  /** The call is over, or given up. */
  clear(call: number): void {
    this.#deadlineMs[call] = 0;
  }

  /** The session is over. */
  stop(): void {
    deadlines.listeners.delete(this);
    if (this.#timer !== noTimer) deadlines.remove(this.#timer);
    this.#timer = noTimer;
  }

  /** The earliest deadline there was: that call, or others, may have ended long since. */
  onDeadline(): void {
    this.#timer = noTimer;
    this.#timerMs = Infinity;
    let earliestMs = Infinity;
    for (const [call, deadlineMs] of this.#deadlineMs.entries()) {
      if (deadlineMs === 0) continue;
      if (deadlineMs > deadlines.now) earliestMs = Math.min(earliestMs, deadlineMs);
      else this.#onPassed(call);
    }
    if (earliestMs !== Infinity) this.#wakeAt(earliestMs);
  }

  onLongTurn(lagMs: number): void {
    for (const [call, turn] of this.#turn.entries()) {
      if (turn === deadlines.turn && this.#deadlineMs[call] !== 0) this.#deadlineMs[call]! += lagMs;
    }
  }

  #wakeAt(deadlineMs: number): void {
    if (this.#timer !== noTimer) deadlines.remove(this.#timer);
    this.#timerMs = deadlineMs;
    this.#timer = deadlines.add(deadlineMs, this, 0);
  }
}
