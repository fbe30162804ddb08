/** What real RDMA must show, as ratios within one run. Used by the report. */
import type { Verdict } from '../goals.ts';
import { median, type Row } from './rows.ts';
import type { CacheFigures } from './session.ts';

const own = 'session';
const latencyTimesMost = 1.3;
const bandwidthLeast = 0.9;
const cacheHitMostNs = 1000;

type Find = (scenario: string, peer: string) => number | undefined;

function ratioOf(find: Find, scenario: string, peer: string): number | undefined {
  const ours = find(scenario, own);
  const theirs = find(scenario, peer);
  return ours === undefined || theirs === undefined ? undefined : ours / theirs;
}

function latency(find: Find, what: string, scenario: string, peer: string): Verdict {
  const ratio = ratioOf(find, scenario, peer);
  return {
    goal: `session ping-pong of 64 B, ${what}: at most ${latencyTimesMost} × ${peer}`,
    found: ratio === undefined ? 'not run' : `${ratio.toFixed(2)} ×`,
    reached: ratio === undefined ? undefined : ratio <= latencyTimesMost,
  };
}

function bandwidth(find: Find, what: string, scenario: string, peer: string, of: string): Verdict {
  const ratio = ratioOf(find, scenario, peer);
  return {
    goal: `${what} of 1 MiB, 8 in flight: at least ${100 * bandwidthLeast} % of ${of}`,
    found: ratio === undefined ? 'not run' : `${(100 * ratio).toFixed(0)} %`,
    reached: ratio === undefined ? undefined : ratio >= bandwidthLeast,
  };
}

export function judge(rows: readonly Row[], cache: CacheFigures): Verdict[] {
  const find: Find = (scenario, peer) =>
    median(rows.find((row) => row.scenario === scenario && row.peer === peer));
  const read = 'read-1MiB-x8';
  const write = 'write-1MiB-x8';
  const open = 'session, no windows';
  return [
    latency(find, 'polling', 'pingpong-64B-poll', 'ib_send_lat'),
    latency(find, 'events', 'pingpong-64B-events', 'ib_send_lat -e'),
    bandwidth(find, 'bulk READ with windows', read, 'ib_read_bw', 'ib_read_bw'),
    bandwidth(find, 'bulk WRITE with windows', write, 'ib_write_bw', 'ib_write_bw'),
    bandwidth(find, 'bulk READ with windows', read, open, 'the same without'),
    bandwidth(find, 'bulk WRITE with windows', write, open, 'the same without'),
    {
      goal: 'hit of the registration cache: at most 1 us, and no call of the device',
      found: `${cache.hitNs.toFixed(0)} ns, ${cache.deviceCalls} calls in ${cache.hits.toLocaleString('en-GB')} hits`,
      reached: cache.hitNs <= cacheHitMostNs && cache.deviceCalls === 0,
    },
  ];
}
