/**
 * The deadlines of a session's calls: a number in each table entry, and one timer for the earliest, so that a
 * call that ends in time costs only a store. A *turn* is explained in boundary/time/deadlines.ts. Owned by a
 * ClientSession, on its JS thread.
 */
import { deadlines } from '../../boundary/time/deadlines.ts';
import { type DeadlinesOwner, EarliestDeadline } from '../../boundary/time/earliest-deadline.ts';
import type { TurnListener } from '../../boundary/time/timer-wheel.ts';
import type { CallRow } from './call-row.ts';

export class CallDeadlines implements DeadlinesOwner, TurnListener {
  readonly #rows: readonly CallRow[];
  readonly #onPassed: (row: CallRow) => void;
  /** The entry that got a deadline last, and the turn in which it did. */
  #last: CallRow | undefined;
  #lastTurn: number;
  readonly #earliest: EarliestDeadline = new EarliestDeadline(this);

  /** `rows` are the entries of the session, of which more may be added. */
  constructor(rows: readonly CallRow[], onPassed: (row: CallRow) => void) {
    this.#rows = rows;
    this.#onPassed = onPassed;
    this.#lastTurn = deadlines.turn - 1;
  }

  /**
   * Sets a deadline, not 0. It ends when the entry's deadline is set to 0: the call has ended or was
   * cancelled.
   */
  set(row: CallRow, deadlineMs: number): void {
    const { turn } = deadlines;
    row.deadlineMs = deadlineMs;
    if (this.#lastTurn !== turn || row.deadlineTurn !== turn) this.#note(row, turn);
    this.#earliest.add(deadlineMs);
  }

  /** Called when the session has ended. */
  stop(): void {
    this.#earliest.stop();
  }

  onDeadlines(): number {
    let earliestMs = Infinity;
    for (const row of this.#rows) {
      const { deadlineMs } = row;
      if (deadlineMs === 0) continue;
      if (deadlineMs > deadlines.now) earliestMs = Math.min(earliestMs, deadlineMs);
      else this.#onPassed(row);
    }
    return earliestMs;
  }

  /** Visits only the calls of this turn: there may be thousands of sessions with hundreds of slots each. */
  onLongTurn(lagMs: number): void {
    this.#earliest.onLongTurn(lagMs);
    for (let row = this.#last; row !== undefined; row = row.deadlineBefore) {
      if (row.deadlineMs !== 0) row.deadlineMs += lagMs;
    }
  }

  /** Called for the entry's first deadline of this turn. */
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
}
