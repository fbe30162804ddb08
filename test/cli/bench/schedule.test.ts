/** Tests the times at which calls of an open loop should begin. */
import { expect, test } from 'vitest';
import { type BenchFlags, planOf } from '../../../cli/bench/flags.ts';
import { type Rates, Schedule } from '../../../cli/bench/schedule.ts';

const forever = Number.POSITIVE_INFINITY;
const of = (rates: Partial<Rates>): Schedule =>
  new Schedule({ kind: 'const', start: 10, step: 0, stepDurationMs: 1000, maxDurationMs: forever, ...rates });
const times = (schedule: Schedule, count: number): number[] =>
  Array.from({ length: count }, (_, call) => Math.round(schedule.intendedAt(call)));

test('a constant rate spaces calls evenly', () => {
  expect(times(of({}), 4)).toEqual([0, 100, 200, 300]);
});

test('steps up stop at the end rate', () => {
  const schedule = of({ kind: 'step', start: 2, step: 2, end: 4 });
  expect(times(schedule, 8)).toEqual([0, 500, 1000, 1250, 1500, 1750, 2000, 2250]);
});

test('steps down stop at the end rate', () => {
  const schedule = of({ kind: 'step', start: 4, step: -2, end: 2 });
  expect(times(schedule, 7)).toEqual([0, 250, 500, 750, 1000, 1500, 2000]);
});

test('steps stop when their time is over', () => {
  const schedule = of({ kind: 'step', start: 1, step: 1, maxDurationMs: 2000 });
  expect(times(schedule, 6)).toEqual([0, 1000, 1500, 2000, 2500, 3000]);
});

test('a line makes as many calls before a time as the area under it', () => {
  const schedule = of({ kind: 'line', start: 10, step: 10, end: 30 });
  expect(schedule.callsBefore(1000)).toBe(15);
  expect(schedule.callsBefore(2000)).toBe(40);
  expect(schedule.callsBefore(3000)).toBe(70);
  expect(Math.round(schedule.intendedAt(15))).toBe(1000);
  expect(Math.round(schedule.intendedAt(40))).toBe(2000);
  expect(Math.round(schedule.intendedAt(70))).toBe(3000);
});

test('the number of calls before a time and the time of a call agree', () => {
  for (const kind of ['const', 'step', 'line'] as const) {
    const [ask, count] = [0, 1].map(() => of({ kind, start: 50, step: 7, end: 400 }));
    for (let call = 1; call < 5000; call += 13) {
      const at = ask!.intendedAt(call);
      expect(count!.callsBefore(at - 0.01)).toBe(call);
      expect(count!.callsBefore(at + 0.01)).toBe(call + 1);
    }
  }
});

test.each<[string, Partial<Rates>, number]>([
  ['steps and the step at the end', { kind: 'step', start: 2, step: 2, end: 5 }, 3000],
  ['steps until their time is over', { kind: 'step', step: 1, maxDurationMs: 2500 }, 2500],
  ['a line to its end', { kind: 'line', start: 10, step: 10, end: 30 }, 2000],
  ['a line until its time is over', { kind: 'line', step: 10, end: 30, maxDurationMs: 500 }, 500],
  ['a line for ever', { kind: 'line', step: 1 }, forever],
  ['a constant rate', {}, forever],
])('the duration of %s', (_, rates, ms) => {
  expect(of(rates).lengthMs).toBe(ms);
});

test.each<[string, Partial<BenchFlags>, [number, number]]>([
  ['a schedule', {}, [forever, 2000]],
  ['a schedule and a number of calls', { total: 7 }, [7, forever]],
  ['a schedule and a time', { duration: 5000 }, [forever, 5000]],
  ['a schedule without an end', { loadEnd: undefined }, [200, forever]],
  ['a schedule of months', { loadStep: 1, loadEnd: 10_000_000 }, [forever, 24 * 3_600_000]],
])('the end of the load with %s', (_, more, ends) => {
  const line = { loadSchedule: 'line', loadStart: 10, loadStep: 10, loadEnd: 30 } as const;
  const { total, durationMs } = planOf({ ...line, ...more } as BenchFlags);
  expect([total, durationMs]).toEqual(ends);
});

test.each<[string, Partial<Rates>, RegExp]>([
  ['a rate of 0', { start: 0 }, /at least 1 call per second/],
  [
    'an end in the wrong direction',
    { kind: 'step', step: 5, end: 2 },
    /begins at 10 never reaches 2 in steps of 5/,
  ],
  ['a falling line without an end', { kind: 'line', step: -1 }, /needs an end/],
])('refuses %s', (_, rates, error) => {
  expect(() => of(rates)).toThrow(error);
});
