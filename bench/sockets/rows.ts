/**
 * The results of the benchmark of sockets: goals, a row for each scenario and peer, and the printed form.
 */
import type { Verdict } from '../goals.ts';
import { figure, goalLines, table } from '../report.ts';
import { median } from '../rows.ts';

/** A measurement of one round. `peer` is a library, or the way through a tunnel. */
export interface SocketRow {
  readonly scenario: string;
  readonly peer: string;
  readonly round: number;
  /** Writes, round trips or requests; bytes for `iperf3`. */
  readonly perSecond: number;
  /** Bytes of each item, when the scenario measures a rate of bytes. */
  readonly bytes: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Percent of one CPU, of the processes that the scenario counts. */
  readonly cpuPercent: number;
}

type Figure = 'perSecond' | 'p50Us' | 'p99Us' | 'cpuPercent';

interface SocketGoal {
  readonly scenario: string;
  readonly peer: string;
  readonly base: string;
  readonly figure: Figure;
  /** The ratio to the base must be at least, or at most, this value. */
  readonly least?: number;
  readonly most?: number;
}

const goals: readonly SocketGoal[] = [
  { scenario: 'write-1MiB', peer: 'rdma-rpc stays', base: 'node:net', figure: 'perSecond', least: 8 },
  { scenario: 'ping-64B', peer: 'rdma-rpc', base: 'node:net', figure: 'p50Us', most: 1 / 3 },
  { scenario: 'ping-64B-asleep', peer: 'rdma-rpc', base: 'node:net', figure: 'p50Us', most: 1 },
  { scenario: 'tcp-write-1MiB', peer: 'rdma-rpc', base: 'node:net', figure: 'perSecond', least: 0.9 },
  { scenario: 'tcp-ping-64B', peer: 'rdma-rpc', base: 'node:net', figure: 'p50Us', most: 1.1 },
  ...['redis-GET', 'redis-GET-pipelined'].flatMap((scenario): SocketGoal[] => [
    { scenario, peer: 'tunnel', base: 'direct', figure: 'perSecond', least: 0.8 },
    { scenario, peer: 'tunnel', base: 'direct', figure: 'p99Us', most: 1.5 },
  ]),
];

const names: Readonly<Record<Figure, string>> = {
  perSecond: 'rate',
  p50Us: 'p50',
  p99Us: 'p99',
  cpuPercent: 'CPU',
};

function of(rows: readonly SocketRow[], scenario: string, peer: string): SocketRow[] {
  return rows.filter((row) => row.scenario === scenario && row.peer === peer);
}

/**
 * Returns the median of the rounds' own ratios, because a slowdown of the machine affects all peers of a
 * round.
 */
function ratio(
  rows: readonly SocketRow[],
  scenario: string,
  peer: string,
  base: string,
  key: Figure,
): number {
  const bases = of(rows, scenario, base);
  return median(
    of(rows, scenario, peer).flatMap((row) => {
      const one = bases.find(({ round }) => round === row.round);
      return one === undefined || one[key] === 0 ? [] : [row[key] / one[key]];
    }),
  );
}

function judge(rows: readonly SocketRow[]): Verdict[] {
  return goals.map(({ scenario, peer, base, figure: key, least, most }) => {
    const found = ratio(rows, scenario, peer, base, key);
    const ran = !Number.isNaN(found);
    const limit = least === undefined ? `at most ${figure(most ?? 0)}` : `at least ${figure(least)}`;
    return {
      goal: `${scenario}: ${limit} × the ${names[key]} of ${base}`,
      found: ran ? `${figure(found)} ×` : 'not run',
      reached: ran ? (least === undefined ? found <= (most ?? 0) : found >= least) : undefined,
    };
  });
}

const head = [
  'scenario',
  'peer',
  'per second',
  'GB/s',
  'p50 us',
  'p99 us',
  'CPU %',
  'CPU us each',
  '× first',
];

export function socketReport(rows: readonly SocketRow[]): string {
  const scenarios = [...new Set(rows.map(({ scenario }) => scenario))];
  const lines = scenarios.flatMap((scenario) => {
    const peers = [...new Set(rows.filter((row) => row.scenario === scenario).map(({ peer }) => peer))];
    return peers.map((peer) => {
      const found = of(rows, scenario, peer);
      const middle = (key: Figure): number => median(found.map((row) => row[key]));
      const bytes = found[0]!.bytes;
      const rate = middle('perSecond');
      return [
        scenario,
        peer,
        bytes === 1 ? '-' : figure(rate),
        bytes === 0 ? '-' : figure((rate * bytes) / 1e9),
        figure(middle('p50Us')),
        figure(middle('p99Us')),
        figure(middle('cpuPercent')),
        bytes === 1 ? '-' : figure((middle('cpuPercent') * 1e4) / rate),
        figure(ratio(rows, scenario, peer, peers[0]!, 'perSecond')),
      ];
    });
  });
  return `${goalLines(judge(rows))}\n\n${table([head, ...lines])}`;
}
