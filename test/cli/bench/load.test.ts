/**
 * Tests the load generator of `rdma-rpc bench`, on a clock that a test controls: the time at which each call
 * begins, and the record of each call.
 */
import { describe, expect, test } from 'vitest';
import { type End, type LoadEnd, LoadRun, type MakeCall, type Plan } from '../../../cli/bench/load.ts';
import { Recording } from '../../../cli/bench/recording.ts';
import { Schedule } from '../../../cli/bench/schedule.ts';
import { oneByOne, VirtualClock } from './virtual.ts';

const forever = Number.POSITIVE_INFINITY;
const constant = (rate: number): Schedule =>
  new Schedule({ kind: 'const', start: rate, step: 0, stepDurationMs: 0, maxDurationMs: forever });

interface Outcome extends LoadEnd {
  readonly recording: Recording;
  /** Returns a percentile in ms. */
  readonly raw: (percentile: number) => number;
  readonly corrected: (percentile: number) => number;
}

async function run(clock: VirtualClock, call: MakeCall, plan: Partial<Plan>, skip = 0): Promise<Outcome> {
  const { schedule, durationMs = forever } = plan;
  const recording = new Recording({ open: schedule !== undefined, expectedMs: durationMs, skip, rows: true });
  const whole = { concurrency: 10, total: forever, durationMs, schedule, graceMs: 1000, ...plan };
  const load = new LoadRun(whole, clock, call, recording);
  const end = await clock.run(load.run());
  const of = (which: 'raw' | 'corrected') => (percentile: number) =>
    recording.total(which)!.getValueAtPercentile(percentile) / 1e6;
  return { ...end, recording, raw: of('raw'), corrected: of('corrected') };
}

describe('closed loop', () => {
  test('each worker has one call at a time, and the requested number of calls is made', async () => {
    const clock = new VirtualClock();
    let most = 0;
    let now = 0;
    const slow = oneByOne(clock, 1);
    const call: MakeCall = async (...args) => {
      most = Math.max(most, ++now);
      const end = await slow(...args);
      --now;
      return end;
    };
    const { begun, elapsedMs, raw, recording } = await run(clock, call, { total: 100, concurrency: 4 });
    expect({ begun, most, elapsedMs: Math.round(elapsedMs) }).toEqual({
      begun: 100,
      most: 4,
      elapsedMs: 100,
    });
    expect(raw(50)).toBeCloseTo(4, 1);
    expect(recording.total('corrected')).toBeUndefined();
  });

  test('it ends at its time limit, after the running calls', async () => {
    const clock = new VirtualClock();
    const { begun, elapsedMs } = await run(clock, oneByOne(clock, 1), { durationMs: 50, concurrency: 2 });
    expect(begun).toBeGreaterThanOrEqual(50);
    expect(begun).toBeLessThanOrEqual(52);
    expect(elapsedMs).toBeLessThanOrEqual(52.001);
  });

  test('calls that fail at once do not block the event loop', async () => {
    const clock = new VirtualClock();
    const failed: End = { code: 'UNAVAILABLE', message: 'gone', responseBytes: 0 };
    const { begun, recording } = await run(clock, async () => failed, { total: 1000 });
    expect(begun).toBe(1000);
    expect(recording.failures).toEqual([{ code: 'UNAVAILABLE', message: 'gone', count: 1000 }]);
    expect(recording.total('raw')!.totalCount).toBe(0);
  });

  test('the first calls can be omitted from the results', async () => {
    const clock = new VirtualClock();
    const { recording } = await run(clock, oneByOne(clock, 1), { total: 20 }, 5);
    expect(recording.codes).toEqual(new Map([['OK', 15]]));
  });
});

describe('open loop', () => {
  test('calls begin on schedule, however long the answers take', async () => {
    const clock = new VirtualClock();
    const starts: number[] = [];
    const slow = oneByOne(clock, 1);
    const call: MakeCall = (...args) => {
      starts.push(clock.now() - 1000);
      return slow(...args);
    };
    await run(clock, call, { schedule: constant(100), total: 5 });
    expect(starts).toEqual([0, 10, 20, 30, 40]);
  });

  test('a server that stops for 200 ms at half of its maximum shows in the corrected p99.9 and not in the raw one', async () => {
    const measured = new VirtualClock();
    const { begun, elapsedMs } = await run(measured, oneByOne(measured, 0.25), { durationMs: 1000 });
    const maximum = (1000 * begun) / elapsedMs;
    expect(maximum).toBeCloseTo(4000, -2);

    const clock = new VirtualClock();
    const half = constant(maximum / 2);
    const call = oneByOne(clock, 0.25, 5000, 200);
    const outcome = await run(clock, call, { schedule: half, durationMs: 10_000 });
    // Ten of 20,000 calls were in progress when the server stopped. These slow calls are too few to affect
    // p99.9. However, four hundred calls were scheduled while the server was stopped, and they had to wait.
    expect(outcome.raw(99.9)).toBeLessThan(5);
    expect(outcome.raw(100)).toBeGreaterThan(190);
    expect(outcome.corrected(99.9)).toBeGreaterThan(150);
    expect(outcome.corrected(50)).toBeLessThan(1);
    expect(outcome.late).toBeGreaterThan(390);
    expect(outcome.unsent).toBe(0);
    expect(outcome.recording.total('corrected')!.totalCount).toBe(outcome.begun);
  });

  test('calls that never began are counted as if they had waited until the end', async () => {
    const clock = new VirtualClock();
    const call = oneByOne(clock, 10);
    const { begun, unsent, corrected } = await run(clock, call, {
      schedule: constant(1000),
      durationMs: 1000,
      graceMs: 500,
      concurrency: 1,
    });
    // The load has 100 calls a second for one second, and then half a second for late calls.
    expect(begun).toBeGreaterThan(148);
    expect(begun + unsent).toBe(1000);
    expect(corrected(99)).toBeGreaterThan(1300);
  });

  test('a call that ran into its deadline counts with that time; other failures count with no time', async () => {
    const clock = new VirtualClock();
    const call: MakeCall = (number) =>
      new Promise((resolve) => {
        const late = number % 2 === 0;
        const code = late ? 'DEADLINE_EXCEEDED' : 'RESOURCE_EXHAUSTED';
        const end = { code, message: code, responseBytes: 0 };
        clock.wakeAt(clock.now() + (late ? 100 : 1), () => resolve(end));
      });
    const { raw, recording } = await run(clock, call, { schedule: constant(10), total: 10 });
    expect(recording.total('raw')!.totalCount).toBe(5);
    expect(raw(50)).toBeCloseTo(100, 0);
  });

  test('stop() lets the running calls end', async () => {
    const clock = new VirtualClock();
    const recording = new Recording({ open: true, expectedMs: forever, skip: 0, rows: false });
    const plan = { concurrency: 5, total: forever, durationMs: forever, graceMs: 0, schedule: constant(100) };
    const load = new LoadRun(plan, clock, oneByOne(clock, 5), recording);
    clock.wakeAt(clock.now() + 95, () => load.stop());
    const { begun, unsent } = await clock.run(load.run());
    expect({ begun, unsent }).toEqual({ begun: 10, unsent: 0 });
  });
});

test('a long run has as many intervals as a short one, and loses no call', async () => {
  const clock = new VirtualClock();
  const { recording } = await run(clock, oneByOne(clock, 100), { total: 2000, concurrency: 1 });
  expect(recording.widthMs).toBe(1600);
  expect(recording.intervals.length).toBeLessThanOrEqual(240);
  expect(recording.intervals.reduce((sum, { calls }) => sum + calls, 0)).toBe(2000);
  expect(recording.total('raw')!.totalCount).toBe(2000);
});

test('writes every call as CSV', async () => {
  const clock = new VirtualClock();
  const { recording } = await run(clock, oneByOne(clock, 1), { schedule: constant(500), total: 3 });
  expect([...recording.table!.csv()].join('')).toMatchInlineSnapshot(`
    "intended_ms,started_ms,raw_us,corrected_us,code
    0.0000,0.0000,1000.0,1000.0,OK
    2.0000,2.0000,1000.0,1000.0,OK
    4.0000,4.0000,1000.0,1000.0,OK
    "
  `);
});
