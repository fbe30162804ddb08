/**
 * Tests the output of `rdma-rpc perf`, which has perftest's columns, for the reports of the two sides.
 */
import { describe, expect, test } from 'vitest';
import { isLatency, type Plan, type TestName } from '../../../cli/perf/plan.ts';
import type { Report } from '../../../cli/perf/report.ts';
import { latencyOf, rowOf } from '../../../cli/perf/row.ts';
import { testedText, validationText } from '../../../cli/perf/table.ts';
import { type Tested, testedOf } from '../../../cli/perf/tested.ts';

const report: Report = {
  messages: 1000,
  received: 0,
  elapsedNs: 1e9,
  userNs: 4e8,
  systemNs: 1e8,
  corrupt: 0,
  firstCorrupt: '',
  latencyUs: null,
  peakNs: 0,
};
const samples = Uint32Array.from({ length: 1000 }, (_, i) => 1000 * (1000 - i));

interface Given {
  readonly bytes: number;
  readonly bidirectional?: boolean;
  readonly client?: Partial<Report>;
  readonly server?: Partial<Report>;
  readonly plan?: Partial<Plan>;
}

function testedWith(name: TestName, given: Given, peers = 1): Tested {
  const row = rowOf({
    bytes: given.bytes,
    latency: isLatency(name),
    bidirectional: given.bidirectional === true,
    validate: given.plan?.validate === true,
    received: name.startsWith('send'),
    answered: !name.startsWith('read'),
    client: { ...report, ...given.client },
    server: { ...report, messages: 0, userNs: 2e8, systemNs: 0, ...given.server },
  });
  const peer = {
    address: '10.0.0.2',
    fabric: 'verbs',
    device: 'rxe0',
    peerDevice: 'rxe1',
    rows: [row],
  } as const;
  const firstCorrupt = given.client?.firstCorrupt ?? '';
  const plan = { connection: 'RC', durationMs: 0, queuePairs: 1, depth: 128, ...given.plan } as Plan;
  return testedOf('client', { ...plan, test: name }, Array(peers).fill({ ...peer, firstCorrupt }));
}

const lines = (tested: Tested, gbits = false): string[] => testedText(tested, gbits).split('\n').slice(1);
const cells = (line: string): string[] => line.trim().split(/ {2,}/);

describe('the columns', () => {
  test('of latency are those of perftest', () => {
    const [names, figures] = lines(
      testedWith('send_lat', { bytes: 2, client: { latencyUs: latencyOf(samples) } }),
    );
    expect(cells(names!)).toEqual([
      '#bytes',
      '#iterations',
      't_min[usec]',
      't_max[usec]',
      't_typical[usec]',
      't_avg[usec]',
      't_stdev[usec]',
      '99% percentile[usec]',
      '99.9% percentile[usec]',
      'CPU_Util[%]',
      'peer CPU_Util[%]',
    ]);
    expect(cells(figures!)).toEqual([
      ...['2', '1000', '1.00', '1000.00', '500.50', '500.50', '288.82', '991.00', '1000.00', '50.0', '20.0'],
    ]);
  });

  test('of latency for a time are those of perftest', () => {
    const [names, figures] = lines(testedWith('send_lat', { bytes: 2, plan: { durationMs: 1000 } }));
    expect(cells(names!).slice(2, 4)).toEqual(['t_avg[usec]', 'tps average']);
    expect(cells(figures!).slice(1, 4)).toEqual(['1000', '500.00', '1000.00']);
  });

  test.each([
    [false, ['BW peak[MB/sec]', 'BW average[MB/sec]', 'MsgRate[Mpps]'], ['125.00', '62.50', '0.001000']],
    [true, ['BW peak[Gb/sec]', 'BW average[Gb/sec]', 'MsgRate[Mpps]'], ['1.05', '0.52', '0.001000']],
  ])('of bandwidth, in gigabits: %s', (gbits, head, figures) => {
    const found = lines(testedWith('write_bw', { bytes: 65_536, client: { peakNs: 5e5 } }), gbits);
    expect(cells(found[0]!)).toEqual(['#bytes', '#iterations', ...head, 'CPU_Util[%]', 'peer CPU_Util[%]']);
    expect(cells(found[1]!).slice(2, 5)).toEqual(figures);
  });

  test('show 0 for a peak that was not measured, as in perftest', () => {
    expect(cells(lines(testedWith('read_bw', { bytes: 8 }))[1]!)[2]).toBe('0.00');
  });

  test('of both directions show the sum of both sides', () => {
    const both = testedWith('send_bw', { bytes: 2 ** 20, bidirectional: true, server: { messages: 500 } });
    expect(cells(lines(both)[1]!).slice(1, 5)).toEqual(['1500', '0.00', '1500.00', '0.001500']);
  });

  test('of datagrams show the number that arrived', () => {
    const [names, figures] = lines(
      testedWith('send_bw', { bytes: 64, server: { received: 990 }, plan: { connection: 'UD' } }),
    );
    expect([cells(names!).at(-1), cells(figures!).at(-1)]).toEqual(['#received', '990']);
  });

  test('of several peers are a table for each, and the sum', () => {
    const text = testedText(testedWith('send_bw', { bytes: 2 ** 20 }, 3), false);
    expect(text.match(/^send_bw with 10.0.0.2: verbs, rxe0 to rxe1/gm)).toHaveLength(3);
    expect(text.split('\n').at(-1)!.trim().split(/ {2,}/)).toEqual([
      '1048576',
      '3000',
      '3000.00',
      '0.003000',
    ]);
  });
});

test('are followed by the number of damaged bytes and the first of them', () => {
  const client = { corrupt: 3, firstCorrupt: 'message 7 of queue pair 0' };
  const text = validationText(testedWith('send_bw', { bytes: 8, client, plan: { validate: true } }));
  expect(text).toBe('3 of 1000 messages arrived with wrong bytes; the first: message 7 of queue pair 0');
});
