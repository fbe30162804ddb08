/**
 * The results of the benchmark of streams: one row for each scenario and peer, the goals, and how they are
 * printed.
 */
import type { Verdict } from '../goals.ts';
import { figure, goalLines, table } from '../report.ts';
import { median } from '../rows.ts';
import type { StreamMeasurement } from './measure.ts';
import { type StreamScenario, streamScenarios } from './scenarios.ts';

export interface StreamRow extends StreamMeasurement {
  readonly scenario: StreamScenario;
  readonly peer: string;
  readonly round: number;
}

const own = 'rdma-rpc';
const other = 'grpc-js';

function of(rows: readonly StreamRow[], scenario: string, peer: string): StreamRow[] {
  return rows.filter((row) => row.scenario.name === scenario && row.peer === peer);
}

/**
 * Returns our rate of messages as a multiple of the peer's rate. The figure is the median of the rounds' own
 * ratios, because a slowdown of the machine affects both peers of a round.
 */
function times(rows: readonly StreamRow[], scenario: string): number {
  const theirs = of(rows, scenario, other);
  return median(
    of(rows, scenario, own).flatMap(({ round, messagesPerSecond }) => {
      const one = theirs.find((row) => row.round === round);
      return one === undefined ? [] : [messagesPerSecond / one.messagesPerSecond];
    }),
  );
}

const goals: readonly [scenario: string, least: number][] = [
  ['download-64B', 10],
  ['download-1MiB', 15],
  ['upload-64B', 10],
  ['upload-1MiB', 15],
];

function judge(rows: readonly StreamRow[]): Verdict[] {
  return goals.map(([scenario, least]) => {
    const ratio = times(rows, scenario);
    const ran = !Number.isNaN(ratio);
    return {
      goal: `${scenario}: at least ${least} × the messages/s of grpc-js`,
      found: ran ? `${ratio.toFixed(1)} ×` : 'not run',
      reached: ran ? ratio >= least : undefined,
    };
  });
}

export function streamReport(rows: readonly StreamRow[]): string {
  const peers = [...new Set(rows.map(({ peer }) => peer))];
  const head = ['scenario', 'peer', 'messages/s', 'GB/s', 'p50 us', 'p99 us', 'CPU %', '× grpc-js'];
  const lines = streamScenarios.flatMap(({ name, bytes, kind }) =>
    peers.flatMap((peer) => {
      const found = of(rows, name, peer);
      if (found.length === 0) return [];
      const middle = (key: keyof StreamMeasurement): number => median(found.map((row) => row[key]));
      const rate = middle('messagesPerSecond');
      const latency = (key: 'p50Us' | 'p99Us'): string => (kind === 'chat' ? figure(middle(key)) : '-');
      const ratio = peer === other ? 1 : times(rows, name);
      return [
        [
          name,
          peer,
          figure(rate),
          bytes >= 4096 ? figure((rate * bytes) / 1e9) : '-',
          latency('p50Us'),
          latency('p99Us'),
          middle('cpuPercent').toFixed(0),
          figure(ratio),
        ],
      ];
    }),
  );
  return `${goalLines(judge(rows))}\n\n${table([head, ...lines])}`;
}
