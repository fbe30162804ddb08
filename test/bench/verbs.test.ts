/** Tests the arithmetic of the benchmark of real RDMA: ratios within rounds, and goals. */
import { describe, expect, test } from 'vitest';
import { judge } from '../../bench/verbs/goals.ts';
import { perfReportOf, reportOf } from '../../bench/verbs/report.ts';
import { notReady } from '../../bench/verbs/rnr.ts';
import { median, type Row, ratio } from '../../bench/verbs/rows.ts';

const row = (scenario: string, peer: string, rounds: (number | null)[]): Row => ({
  scenario,
  peer,
  unit: 'us',
  sameRun: false,
  rounds,
  why: '',
});
const cache = { hitNs: 20, hits: 1000, deviceCalls: 0 };

describe('rows', () => {
  test('a ratio is the median of the ratios of each round, so that a slow round counts for both', () => {
    expect(ratio(row('a', 'ours', [10, 900, 12]), row('a', 'theirs', [10, 1000, 10]))).toBe(1);
  });

  test('a round that one of them did not run is ignored', () => {
    expect(ratio(row('a', 'ours', [10, null, 30]), row('a', 'theirs', [null, 10, 10]))).toBe(3);
    expect(ratio(row('a', 'ours', [null]), row('a', 'theirs', [1]))).toBeUndefined();
    expect(ratio(undefined, row('a', 'theirs', [1]))).toBeUndefined();
  });

  test('a median of an even number of rounds lies between the two in the middle', () => {
    expect(median(row('a', 'ours', [4, 1, null, 2, 3]))).toBe(2.5);
    expect(median(row('a', 'ours', [null]))).toBeUndefined();
  });
});

test('SENDs without a receive are summed over all devices and ports, by the available counters', () => {
  const files: Record<string, string> = {
    '/ib/rxe0/ports/1/hw_counters/rcvd_rnr_err': '2\n',
    '/ib/rxe0/ports/1/hw_counters/send_rnr_err': '0\n',
    '/ib/mlx5_0/ports/2/hw_counters/out_of_buffer': '5\n',
  };
  const readdirSync = (path: string): string[] => [
    ...new Set(
      Object.keys(files).flatMap((file) =>
        file.startsWith(`${path}/`) ? [file.slice(path.length + 1).split('/', 1)[0]!] : [],
      ),
    ),
  ];
  const readFileSync = (path: string): string => {
    const text = files[path];
    if (text === undefined) throw new Error('ENOENT');
    return text;
  };
  expect(notReady('/ib', { readdirSync, readFileSync })).toBe(7);
  expect(notReady('/none', { readdirSync, readFileSync })).toBeUndefined();
});

describe('the tool beside perftest', () => {
  const line = (name: string, bare: number | null) => [
    row(name, 'bare', [bare]),
    row(name, 'perftest', [100]),
    row(name, 'verbs', [120]),
  ];
  test.each([
    [104, 'within 5 %'],
    [96, 'within 5 %'],
    [106, 'missed'],
    [94, 'missed'],
    [null, 'not run'],
  ])('%s where perftest has 100: %s', (bare, verdict) => {
    const report = perfReportOf([...line('send_lat 2', bare), ...line('read_bw 2', 100)], 1, 'here');
    const cells = report.split('\n').find((each) => each.startsWith('| send_lat 2'))!;
    expect(cells.split('|').map((each) => each.trim())).toContain(verdict);
    expect(cells).toContain('1.20 ×');
  });
});

describe('the report', () => {
  test('divides by the figure of another run, not by another figure of the same run', () => {
    const rows = [
      row('beside', 'session, p50', [20]),
      { ...row('beside', 'session, p99', [100]), sameRun: true },
      row('beside', 'alone, p50', [10]),
    ];
    const ratios = reportOf(rows, cache, 1, 'here')
      .split('\n')
      .filter((line) => line.startsWith('| beside'))
      .map((line) => line.split('|').at(-2)!.trim());
    expect(ratios).toEqual(['1.00 ×', '-', '2.00 ×']);
  });
});

describe('goals', () => {
  const pingpong = (ours: number) => [
    row('pingpong-64B-poll', 'session', [ours]),
    row('pingpong-64B-poll', 'ib_send_lat', [10]),
  ];

  test.each([
    [13, true],
    [13.1, false],
  ])('a ping-pong of %d us against 10 us: reached is %s', (ours, reached) => {
    expect(judge(pingpong(ours), cache)[0]!.reached).toBe(reached);
  });

  test('bandwidth must be at least 90 %', () => {
    const rows = [row('read-1MiB-x8', 'session', [89]), row('read-1MiB-x8', 'ib_read_bw', [100])];
    expect(judge(rows, cache)[2]).toMatchObject({ found: '89 %', reached: false });
  });

  test('a goal that was not measured is neither reached nor missed', () => {
    const verdicts = judge([], cache).slice(0, -1);
    expect(verdicts.every(({ found, reached }) => found === 'not run' && reached === undefined)).toBe(true);
  });

  test('a cache hit that calls the device misses its goal', () => {
    expect(judge([], { ...cache, deviceCalls: 1 }).at(-1)!.reached).toBe(false);
    expect(judge([], { ...cache, hitNs: 1001 }).at(-1)!.reached).toBe(false);
    expect(judge([], cache).at(-1)!.reached).toBe(true);
  });
});
