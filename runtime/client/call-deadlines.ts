/**
 * The deadlines of a session's calls: a number in each row, and one timer for the earliest, so that a call
 * that ends in time costs a store. Owned by a ClientSession, on its JS thread.
 */
import { deadlines } from '../lane/deadlines.ts';
import type { DeadlineOwner, TurnListener } from '../lane/timer-wheel.ts';
import type { CallRow } from './call-row.ts';

const noTimer = -1;

export class CallDeadlines implements DeadlineOwner, TurnListener {
  readonly #rows: readonly CallRow[];
  readonly #onPassed: (row: CallRow) => void;
  /** The row that was given a deadline last, in that turn. */
  #last: CallRow | undefined;
  #lastTurn: number;
  #timer = noTimer;
  #timerMs = Infinity;
  /** In which it was set. */
  #timerTurn = 0;

  /** `rows`: of the session, which go on coming. */
  constructor(rows: readonly CallRow[], onPassed: (row: CallRow) => void) {
    this.#rows = rows;
    this.#onPassed = onPassed;
    this.#lastTurn = deadlines.turn - 1;
  }

  /** Not 0. It ends by a 0 in the row: the call is over, or given up. */
  set(row: CallRow, deadlineMs: number): void {
    const { turn } = deadlines;
    row.deadlineMs = deadlineMs;
    if (this.#lastTurn !== turn || row.deadlineTurn !== turn) this.#note(row, turn);
    if (deadlineMs < this.#timerMs) this.#wakeAt(deadlineMs);
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
    for (const row of this.#rows) {
      const { deadlineMs } = row;
      if (deadlineMs === 0) continue;
      if (deadlineMs > deadlines.now) earliestMs = Math.min(earliestMs, deadlineMs);
      else this.#onPassed(row);
    }
    if (earliestMs !== Infinity) this.#wakeAt(earliestMs);
  }

  /**
   * Looks at the calls of this turn only: there may be thousands of sessions, with hundreds of slots each.
   */
  onLongTurn(lagMs: number): void {
    // The wheel has moved that, too: a deadline between the two needs another one.
    if (this.#timerTurn === deadlines.turn) this.#timerMs += lagMs;
    for (let row = this.#last; row !== undefined; row = row.deadlineBefore) {
      if (row.deadlineMs !== 0) row.deadlineMs += lagMs;
    }
  }

  /** The row's first deadline of this turn. */
  #note(row: CallRow, turn: number): void {
    if (this.#lastTurn !== turn) {
      this.#lastTurn = turn;
      this.#last = undefined;
      deadlines.listen(this);
    }
    row.deadlineTurn = turn;
    row.deadlineBefore = this.#last;
    this.#last = row;
  }

  #wakeAt(deadlineMs: number): void {
    if (this.#timer !== noTimer) deadlines.remove(this.#timer);
    this.#timerMs = deadlineMs;
    this.#timerTurn = deadlines.turn;
    this.#timer = deadlines.add(deadlineMs, this, 0);
  }
}
