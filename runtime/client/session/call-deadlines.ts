/**
 * The deadlines of a session's calls. Each table entry has its deadline as a number, and one timer runs for
 * the earliest deadline. A call that ends in time therefore costs only a store. The file
 * boundary/time/deadlines.ts explains what a *turn* is. A ClientSession owns this object and uses it on its
 * JS thread.
 */
import { deadlines } from '../../boundary/time/deadlines.ts';
import { type DeadlinesOwner, EarliestDeadline } from '../../boundary/time/earliest-deadline.ts';
import type { TurnListener } from '../../boundary/time/timer-wheel.ts';
import type { CallRow } from './call-row.ts';

export class CallDeadlines implements DeadlinesOwner, TurnListener {
  readonly #rows: readonly CallRow[];
  readonly #onPassed: (row: CallRow) => void;
  /** The entry that got a deadline last. `#lastTurn` is the turn in which this entry got its deadline. */
  #last: CallRow | undefined;
  #lastTurn: number;
  readonly #earliest: EarliestDeadline = new EarliestDeadline(this);

  /** `rows` is the list of the session's entries. The session may add entries to it later. */
  constructor(rows: readonly CallRow[], onPassed: (row: CallRow) => void) {
    this.#rows = rows;
    this.#onPassed = onPassed;
    this.#lastTurn = deadlines.turn - 1;
  }

  /**
   * Sets a deadline, which must not be 0. To remove a deadline when its call has ended or was cancelled, set
   * the entry's deadline to 0.
   */
  set(row: CallRow, deadlineMs: number): void {
    const { turn } = deadlines;
    row.deadlineMs = deadlineMs;
    if (this.#lastTurn !== turn || row.deadlineTurn !== turn) this.#note(row, turn);
    this.#earliest.add(deadlineMs);
  }

  /** Runs when the session has ended. */
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

  /**
   * Visits only the calls of this turn, because there may be thousands of sessions with hundreds of slots
   * each.
   */
  onLongTurn(lagMs: number): void {
    this.#earliest.onLongTurn(lagMs);
    for (let row = this.#last; row !== undefined; row = row.deadlineBefore) {
      if (row.deadlineMs !== 0) row.deadlineMs += lagMs;
    }
  }

  /** Runs for the entry's first deadline of this turn. */
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
