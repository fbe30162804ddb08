/**
 * Tests deadlines of a session's calls. Only deadlines that were set in a long event-loop iteration move, by
 * the length of the iteration. Other sessions are not visited.
 */
import { afterEach, expect, test } from 'vitest';
import { deadlines } from '../../runtime/boundary/time/deadlines.ts';
import { CallDeadlines } from '../../runtime/client/session/call-deadlines.ts';
import { CallRow } from '../../runtime/client/session/call-row.ts';

/** The calls of the sessions that this file has made. */
const made: Counted[] = [];

class Counted extends CallDeadlines {
  looks = 0;
  readonly rows: readonly CallRow[];
  constructor(rows = Array.from({ length: 8 }, (_, call) => new CallRow(call))) {
    super(rows, () => undefined);
    this.rows = rows;
    made.push(this);
  }
  deadline(call: number, ms: number): void {
    this.set(this.rows[call]!, ms);
  }
  of(...calls: number[]): number[] {
    return calls.map((call) => this.rows[call]!.deadlineMs);
  }
  override onLongTurn(lagMs: number): void {
    ++this.looks;
    super.onLongTurn(lagMs);
  }
}

const newTurn = (): void => deadlines.refresh(deadlines.now + 1);
/** Ends the current event-loop iteration as if it had taken this time. */
const endTurn = (ms: number): void => deadlines.endTurn(deadlines.now + ms);

afterEach(() => {
  for (const session of made.splice(0)) session.stop();
});

test('deadlines that were set in the long turn move, and earlier ones do not', () => {
  const session = new Counted();
  const from = deadlines.now;
  newTurn();
  session.deadline(3, from + 1e6);
  newTurn();
  session.deadline(5, from + 2e6);
  session.deadline(1, from + 3e6);
  endTurn(500);
  expect(session.of(3, 5, 1, 0)).toEqual([from + 1e6, from + 2e6 + 500, from + 3e6 + 500, 0]);
});

test('a deadline that is set twice in the turn moves once, and a cleared one stays cleared', () => {
  const session = new Counted();
  const from = deadlines.now;
  newTurn();
  session.deadline(2, from + 1e6);
  session.deadline(4, from + 1e6);
  session.rows[2]!.empty();
  session.rows[4]!.empty();
  session.deadline(2, from + 2e6);
  endTurn(500);
  expect(session.of(2, 4)).toEqual([from + 2e6 + 500, 0]);
});

test('after a long turn each session that has set a deadline in it is visited once', () => {
  const sessions = Array.from({ length: 100 }, () => new Counted());
  newTurn();
  for (const session of sessions) session.deadline(0, deadlines.now + 1e6);
  newTurn();
  sessions[42]!.deadline(1, deadlines.now + 1e6);
  sessions[42]!.deadline(2, deadlines.now + 1e6);
  endTurn(500);
  endTurn(500);
  expect(sessions.map(({ looks }) => looks)).toEqual(sessions.map((_, index) => (index === 42 ? 1 : 0)));
});

test('a deadline before the first one that has moved does not wait for it', () => {
  const rows = [new CallRow(0), new CallRow(1)] as const;
  const passed: CallRow[] = [];
  const session = new CallDeadlines(rows, (row) => {
    row.deadlineMs = 0;
    passed.push(row);
  });
  const from = deadlines.now;
  newTurn();
  session.set(rows[0], from + 100);
  endTurn(500);
  session.set(rows[1], from + 550);
  deadlines.run(from + 570);
  expect(passed).toEqual([rows[1]]);
  deadlines.run(from + 700);
  expect(passed).toEqual([rows[1], rows[0]]);
});
