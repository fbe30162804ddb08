/**
 * The deadlines of a session's calls, by call slot: a number each, and one timer for the earliest, so that a call that ends in time costs a store. Owned by
 * a ClientSession, on its JS thread.
 */
import { deadlines } from '../lane/deadlines.ts';
import type { DeadlineOwner, TurnListener } from '../lane/timer-wheel.ts';

const noTimer = -1;
const none = -1;

export class CallDeadlines implements DeadlineOwner, TurnListener {
  /** Absolute, ms; 0: none. */
  readonly #deadlineMs: Float64Array;
  /** Turn that the deadline was computed in, and the call before it that was given one in the same turn. */
  readonly #turn: Int32Array;
  readonly #before: Int32Array;
  /** The last call that was given one, in that turn. */
  #last = none;
  #lastTurn: number;
  readonly #onPassed: (call: number) => void;
  #timer = noTimer;
  #timerMs = Infinity;

  constructor(calls: number, onPassed: (call: number) => void) {
    this.#deadlineMs = new Float64Array(calls);
    this.#lastTurn = deadlines.turn - 1;
    this.#turn = new Int32Array(calls).fill(this.#lastTurn);
    this.#before = new Int32Array(calls);
    this.#onPassed = onPassed;
  }

  /** 0: none. */
  of(call: number): number {
    return this.#deadlineMs[call]!;
  }

  /** Not 0. */
  set(call: number, deadlineMs: number): void {
    const { turn } = deadlines;
    this.#deadlineMs[call] = deadlineMs;
    if (this.#turn[call] !== turn) this.#note(call, turn);
    if (deadlineMs < this.#timerMs) this.#wakeAt(deadlineMs);
  }

  /** The call is over, or given up. */
  clear(call: number): void {
    this.#deadlineMs[call] = 0;
  }

  /** The session is over. */
  stop(): void {
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

  /** Looks at the calls of this turn only: there may be thousands of sessions, with hundreds of slots each. */
  onLongTurn(lagMs: number): void {
    for (let call = this.#last; call !== none; call = this.#before[call]!) {
      if (this.#deadlineMs[call] !== 0) this.#deadlineMs[call]! += lagMs;
    }
  }

  /** The call's first deadline of this turn. */
  #note(call: number, turn: number): void {
    if (this.#lastTurn !== turn) {
      this.#lastTurn = turn;
      this.#last = none;
      deadlines.listen(this);
    }
    this.#turn[call] = turn;
    this.#before[call] = this.#last;
    this.#last = call;
  }

  #wakeAt(deadlineMs: number): void {
    if (this.#timer !== noTimer) deadlines.remove(this.#timer);
    this.#timerMs = deadlineMs;
    this.#timer = deadlines.add(deadlineMs, this, 0);
  }
}
