/**
 * Tests the goals of the benchmark. Each goal is tested at its limit. A goal whose rows are missing from the
 * results is not judged.
 */
import { describe, expect, it } from 'vitest';
import { judge } from '../../bench/goals.ts';
import { goalLines } from '../../bench/report.ts';
import type { Row } from '../../bench/rows.ts';
import { scenarios } from '../../bench/scenarios.ts';
import { row } from './row.ts';

describe('goals', () => {
  const run = (share: number): Row[] => [
    row('echo-32B-x256', 'limit', { callsPerSecond: 1_000_000 }),
    row('echo-32B-x256', 'grpc-js', { callsPerSecond: 1000 }),
    row('echo-32B-x256', 'rdma-rpc', { callsPerSecond: share * 1_000_000 }),
  ];

  it.each([
    [0.7, [true, true]],
    [0.69, [false, true]],
    [0.39, [false, false]],
  ])('with %d of the limit and 1000 times less grpc-js: %j', (share, expected) => {
    const about = judge(run(share)).filter(({ goal }) => /^echo-32B-x256: at least \d+ (%|×)/.test(goal));
    expect(about.map((verdict) => verdict.reached)).toEqual(expected);
  });

  // The values are in calls/s: the steady rate and the first second of the quick start, the rate with all
  // memory returned, and the rate of grpc-js.
  it.each([
    [600, 300, 1000, 37.5, true],
    [599, 300, 1000, 37.5, false],
    [600, 299, 1000, 37, false],
    [600, 300, 1000, 37.6, false],
  ])('%d and %d calls/s as in the quick start beside %d and %d: reached is %s', (...given) => {
    const [callsPerSecond, firstCallsPerSecond, back, grpc, reached] = given;
    for (const name of ['plain-echo-64KiB-x8', 'tcp-plain-put-1MiB-x8']) {
      const rows = [
        row(name, 'quick start', { callsPerSecond, firstCallsPerSecond }),
        // The goals do not use the first second of the row with all memory returned, nor the steady rate of
        // grpc-js.
        row(name, 'rdma-rpc', { callsPerSecond: back, firstCallsPerSecond: 1 }),
        row(name, 'grpc-js', { callsPerSecond: 9e9, firstCallsPerSecond: grpc }),
      ];
      const found = (some: Row[]) => judge(some).find(({ goal }) => goal.startsWith(`${name}:`));
      expect(found(rows)?.reached).toBe(reached);
      for (const lacking of rows.keys())
        expect(found(rows.filter((_, index) => index !== lacking))?.reached).toBeUndefined();
    }
  });

  const verdict = (rows: Row[], goal: string): unknown =>
    judge(rows).find((each) => each.goal === goal)?.reached;

  it.each([
    [350, true],
    [349, false],
  ])('sealed calls at %d of 1000 without: reached is %s', (callsPerSecond, reached) => {
    const rows = [
      row('echo-32B-x256', 'rdma-rpc', { callsPerSecond: 1000 }),
      row('echo-32B-x256', 'sealed', { callsPerSecond }),
    ];
    const goal = 'echo-32B-x256: sealed at least 35 % of the calls/s of unsealed sessions';
    expect(verdict(rows, goal)).toBe(reached);
    expect(verdict(rows.slice(1), goal)).toBeUndefined();
  });

  // The values are bytes per second, and the CPU time of both sides together, in which 200 % means two CPUs.
  it.each([
    [1.2e9, 200, true],
    [1.19e9, 200, false],
    [0.6e9, 100, true],
    [1.2e9, 201, false],
  ])('%d bytes/s sealed with %d %% of a CPU: reached is %s', (bytesPerSecond, cpuPercent, reached) => {
    const goalOf = (name: string) =>
      `${name}: sealed at least 1.2 GB/s when both sides together use two CPUs fully`;
    for (const name of ['put-1MiB-x8', 'tcp-put-1MiB-x8']) {
      const rows = [
        row(name, 'rdma-rpc', { bytesPerSecond: 9e9, cpuPercent }),
        row(name, 'sealed', { bytesPerSecond, cpuPercent }),
      ];
      expect(verdict(rows, goalOf(name))).toBe(reached);
      expect(verdict(rows.slice(0, 1), goalOf(name))).toBeUndefined();
    }
  });

  it.each([
    [3000, 3000, 200, true],
    [3001, 3000, 200, false],
    [3000, 3001, 200, false],
    [3000, 3000, 199, false],
  ])(
    'handshakes with %d us of the client and %d us of the server, %d a second: reached is %s',
    (...given) => {
      const [clientCpuUs, serverCpuUs, callsPerSecond, reached] = given;
      const name = 'tcp-handshakes-x8';
      const goal = `${name}: with TLS at most 3 ms of CPU time on each side, and at least 200 new sessions/s`;
      const rows = [
        row(name, 'tls', { clientCpuUs, serverCpuUs, callsPerSecond }),
        row(name, 'rdma-rpc', { clientCpuUs: 1, serverCpuUs: 1, callsPerSecond: 9999 }),
      ];
      expect(verdict(rows, goal)).toBe(reached);
      expect(verdict(rows.slice(1), goal)).toBeUndefined();
    },
  );

  it.each([
    [5, 60, 500, true],
    [5.1, 60, 500, false],
    [5, 61, 500, false],
    [5, 60, 501, false],
  ])(
    'small calls beside a transfer with %d us (p50), %d us (p99), %d us (p99.9): reached is %s',
    (...given) => {
      const [p50Us, p99Us, p999Us, reached] = given;
      for (const name of ['echo-32B-x1-beside-16MiB', 'echo-32B-x1-beside-16MiB-elsewhere']) {
        const goal = `${name}: p50 at most 5 us, p99 at most 60 us, p99.9 at most 500 us`;
        expect(verdict([row(name, 'rdma-rpc', { p50Us, p99Us, p999Us })], goal)).toBe(reached);
        expect(verdict([row(name, 'grpc-js', { p50Us, p99Us, p999Us })], goal)).toBeUndefined();
      }
    },
  );

  it.each([
    [1.2, true],
    [1.21, false],
  ])('memory after large calls of %d times that before: reached is %s', (restTimes, reached) => {
    const name = 'tcp-rest-after-1MiB-x8';
    const goal = `${name}: after large calls a program as in the quick start has at most 1.2 × the memory that it had before them`;
    const grpc = row(name, 'grpc-js', { restTimes: 3 });
    expect(verdict([row(name, 'quick start', { restTimes })], goal)).toBe(reached);
    expect(
      judge([row(name, 'quick start', { restTimes }), grpc]).find((each) => each.goal === goal)?.found,
    ).toBe(`${restTimes.toFixed(2)} ×; grpc-js 3.00 ×`);
    expect(verdict([grpc], goal)).toBeUndefined();
  });

  const of32 = 'echo-200B-x256: at least 80 % of the calls/s of echo-32B-x256';
  const of8000 = 'echo-9KiB-x8: a call takes at most 1.3 × the time of echo-8000B-x8';
  it.each([
    [of32, 'echo-200B-x256', 'echo-32B-x256', 800, true],
    [of32, 'echo-200B-x256', 'echo-32B-x256', 799, false],
    [of8000, 'echo-9KiB-x8', 'echo-8000B-x8', 770, true],
    [of8000, 'echo-9KiB-x8', 'echo-8000B-x8', 769, false],
  ])('%s: %s beside 1000 of %s, %d calls/s: reached is %s', (goal, name, base, callsPerSecond, reached) => {
    const rows = [row(name, 'rdma-rpc', { callsPerSecond }), row(base, 'rdma-rpc', { callsPerSecond: 1000 })];
    expect(verdict(rows, goal)).toBe(reached);
    expect(verdict(rows.slice(1), goal)).toBeUndefined();
  });

  it.each([
    [32, 200, 1024, 100, true],
    [32, 200, 1024, 99, false],
  ])('with %d, %d and %d bytes 150, 150 and %d calls/s: reached is %s', (...given) => {
    const [small, middle, large, callsPerSecond, reached] = given;
    const goal = 'echo-32B-x256 to echo-1KiB-x256: no step of more than 1.5 × between neighbours';
    const rows = [
      row('echo-32B-x256', 'rdma-rpc', { payloadBytes: small, callsPerSecond: 150 }),
      row('echo-200B-x256', 'rdma-rpc', { payloadBytes: middle, callsPerSecond: 150 }),
      row('echo-1KiB-x256', 'rdma-rpc', { payloadBytes: large, callsPerSecond }),
    ];
    expect(verdict(rows, goal)).toBe(reached);
  });

  it.each([
    [100, true, '1.50 ×'],
    [99, false, '1.52 ×'],
  ])('150 calls/s with 256 in flight, %d with 512: reached is %s', (callsPerSecond, reached, found) => {
    const goal = 'echo-32B-x1 to echo-32B-x4096: no step of more than 1.5 × between neighbours';
    const rows = [1, 4, 16, 32, 64, 256, 512, 1024, 4096].map((inFlight) =>
      row(`echo-32B-x${inFlight}`, 'rdma-rpc', {
        inFlight,
        callsPerSecond: inFlight < 512 ? 150 : callsPerSecond,
      }),
    );
    expect(judge(rows).find((each) => each.goal === goal)).toMatchObject({
      found: `${found}, from echo-32B-x256 to echo-32B-x512`,
      reached,
    });
    expect(verdict(rows.slice(1), goal)).toBeUndefined();
  });

  it('without the rows that they compare are not judged', () => {
    const verdicts = judge([]);
    expect(verdicts.length).toBeGreaterThan(8);
    expect(verdicts.every(({ reached }) => reached === undefined)).toBe(true);
    expect(goalLines(verdicts)).toContain('not run');
  });

  it('only name scenarios that exist', () => {
    const names = scenarios.map((each) => each.name);
    for (const { goal } of judge([])) {
      expect(names.some((name) => goal.startsWith(name))).toBe(true);
    }
  });
});
