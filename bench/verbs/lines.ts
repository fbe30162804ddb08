/**
 * The lines of perftest with which `rdma-rpc perf` is compared: each of its tests, at a few sizes.
 */
import type { TestName } from '../../cli/perf/plan.ts';
import { perftest } from './perftest.ts';
import type { Peer, Scenario } from './scenarios.ts';
import { type ToolTest, tool } from './tool.ts';

/**
 * Columns of perftest. The median of latencies follows bytes, iterations, minimum and maximum; the average of
 * bandwidths follows the peak.
 */
const typicalColumn = 4;
const averageColumn = 3;
const mebibyte = 2 ** 20;

function ours(name: string, fabric: 'bare' | 'verbs', asked: ToolTest): Peer {
  return {
    name,
    async measure(devices, scale) {
      const row = await tool(devices, fabric, { ...asked, iterations: asked.iterations * scale });
      return row.latencyUs === null ? row.bandwidth!.bytesPerSecond / mebibyte : row.latencyUs.typical;
    },
  };
}

function theirs({ test, bytes, iterations }: ToolTest): Peer {
  const column = test.endsWith('_lat') ? typicalColumn : averageColumn;
  const inline = ['-I', '0'];
  return {
    name: `ib_${test}`,
    async measure(devices, scale) {
      const more = test.startsWith('read') ? [] : inline;
      return (await perftest(`ib_${test}`, devices, bytes, iterations * scale, more))[column]!;
    },
  };
}

function line(test: TestName, bytes: number, iterations: number): Scenario {
  const asked = { test, bytes, iterations };
  return {
    name: `${test} ${bytes}`,
    unit: test.endsWith('_lat') ? 'us' : 'MiB/s',
    turns: 1,
    peers: [
      ours('perf --fabric bare', 'bare', asked),
      theirs(asked),
      ours('perf --fabric verbs', 'verbs', asked),
    ],
  };
}

const latencies: readonly TestName[] = ['send_lat', 'write_lat', 'read_lat'];
const bandwidths: readonly TestName[] = ['send_bw', 'write_bw', 'read_bw'];

/** The number of messages of each size is such that they take about a second in an emulated guest. */
export const lines: readonly Scenario[] = [
  ...latencies.flatMap((test) => [line(test, 2, 10_000), line(test, 1024, 10_000), line(test, 65_536, 600)]),
  ...bandwidths.flatMap((test) => [
    line(test, 1024, 20_000),
    line(test, 65_536, 1000),
    line(test, 1 << 20, 100),
  ]),
];
