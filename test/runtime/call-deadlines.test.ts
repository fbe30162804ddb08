/** Deadlines of a session's calls: those made in a turn that took long move by its length, no others, and nobody else is looked at. */
import { afterEach, expect, test } from 'vitest';
import { CallDeadlines } from '../../runtime/client/call-deadlines.ts';
import { deadlines } from '../../runtime/lane/deadlines.ts';

/** Of sessions that have been made here. */
const made: Counted[] = [];

class Counted extends CallDeadlines {
  looks = 0;
  constructor(calls: number) {
    super(calls, () => undefined);
    made.push(this);
  }
  override onLongTurn(lagMs: number): void {
    ++this.looks;
    super.onLongTurn(lagMs);
  }
}

const newTurn = (): void => deadlines.refresh(deadlines.now + 1);
/** The turn that is on has taken so long. */
const endTurn = (ms: number): void => deadlines.endTurn(deadlines.now + ms);

afterEach(() => {
  for (const session of made.splice(0)) session.stop();
});

test('those of the long turn move, those of an earlier one do not', () => {
  const session = new Counted(8);
  const from = deadlines.now;
  newTurn();
  session.set(3, from + 1e6);
  newTurn();
  session.set(5, from + 2e6);
  session.set(1, from + 3e6);
  endTurn(500);
  expect([3, 5, 1, 0].map((call) => session.of(call))).toEqual([
    from + 1e6,
    from + 2e6 + 500,
    from + 3e6 + 500,
    0,
  ]);
});

test('one that was set twice in the turn moves once, one that was cleared stays none', () => {
  const session = new Counted(8);
  const from = deadlines.now;
  newTurn();
  session.set(2, from + 1e6);
  session.set(4, from + 1e6);
  session.clear(2);
  session.clear(4);
  session.set(2, from + 2e6);
  endTurn(500);
  expect([2, 4].map((call) => session.of(call))).toEqual([from + 2e6 + 500, 0]);
});

test('a long turn looks at sessions that have made a deadline in it, once each', () => {
  const sessions = Array.from({ length: 100 }, () => new Counted(8));
  newTurn();
  for (const session of sessions) session.set(0, deadlines.now + 1e6);
  newTurn();
  sessions[42]!.set(1, deadlines.now + 1e6);
  sessions[42]!.set(2, deadlines.now + 1e6);
  endTurn(500);
  endTurn(500);
  expect(sessions.map(({ looks }) => looks)).toEqual(sessions.map((_, index) => (index === 42 ? 1 : 0)));
});
