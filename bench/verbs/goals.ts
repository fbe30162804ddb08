/**
 * The goals for real RDMA, as ratios within one run. The report uses this file.
 */
import type { Verdict } from '../goals.ts';
import { type Row, ratio } from './rows.ts';
import type { CacheFigures } from './session.ts';

const own = 'session';
const latencyTimesMost = 1.3;
const bandwidthLeast = 0.9;
const cacheHitMostNs = 1000;

type RatioTo = (scenario: string, peer: string) => number | undefined;

function latency(ratioTo: RatioTo, what: string, scenario: string, peer: string): Verdict {
  const found = ratioTo(scenario, peer);
  return {
    goal: `session ping-pong of 64 B, ${what}: at most ${latencyTimesMost} × ${peer}`,
    found: found === undefined ? 'not run' : `${found.toFixed(2)} ×`,
    reached: found === undefined ? undefined : found <= latencyTimesMost,
  };
}

function bandwidth(ratioTo: RatioTo, what: string, scenario: string, peer: string, of: string): Verdict {
  const found = ratioTo(scenario, peer);
  return {
    goal: `${what}, 1 MiB, 8 in flight: at least ${100 * bandwidthLeast} % of the rate of ${of}`,
    found: found === undefined ? 'not run' : `${(100 * found).toFixed(0)} %`,
    reached: found === undefined ? undefined : found >= bandwidthLeast,
  };
}

export function judge(rows: readonly Row[], cache: CacheFigures): Verdict[] {
  const find = (scenario: string, peer: string): Row | undefined =>
    rows.find((row) => row.scenario === scenario && row.peer === peer);
  const ratioTo: RatioTo = (scenario, peer) => ratio(find(scenario, own), find(scenario, peer));
  const read = 'read-1MiB-x8';
  const write = 'write-1MiB-x8';
  const open = 'session, no windows';
  return [
    latency(ratioTo, 'polling', 'pingpong-64B-poll', 'ib_send_lat'),
    latency(ratioTo, 'events', 'pingpong-64B-events', 'ib_send_lat -e'),
    bandwidth(ratioTo, 'READs with memory windows', read, 'ib_read_bw', 'ib_read_bw'),
    bandwidth(ratioTo, 'WRITEs with memory windows', write, 'ib_write_bw', 'ib_write_bw'),
    bandwidth(ratioTo, 'READs with memory windows', read, open, 'a session without windows'),
    bandwidth(ratioTo, 'WRITEs with memory windows', write, open, 'a session without windows'),
    {
      goal: 'hit in the registration cache: at most 1 us, without a call to the device',
      found: `${cache.hitNs.toFixed(0)} ns, ${cache.deviceCalls} calls in ${cache.hits.toLocaleString('en-GB')} hits`,
      reached: cache.hitNs <= cacheHitMostNs && cache.deviceCalls === 0,
    },
  ];
}

/**
 * Our figures beside those of perftest. They are measured by libibverbs alone, as perftest does, and by the
 * fabric of sessions.
 */
export interface Line {
  readonly name: string;
  readonly unit: Row['unit'];
  readonly theirs: Row;
  readonly bare: Row;
  readonly fabric: Row;
  /**
   * Whether the figures for `bare` agree with perftest's. It is undefined when one of the two programs did
   * not run.
   */
  readonly within: boolean | undefined;
}

/** A tool that measures the same quantity should find the same figure, and not a better one. */
const apartMost = 0.05;

export function linesWithin(rows: readonly Row[]): Line[] {
  const names = [...new Set(rows.map(({ scenario }) => scenario))];
  return names.map((name) => {
    const [bare, theirs, fabric] = rows.filter(({ scenario }) => scenario === name) as [Row, Row, Row];
    const found = ratio(bare, theirs);
    const within = found === undefined ? undefined : Math.abs(found - 1) <= apartMost;
    return { name, unit: bare.unit, theirs, bare, fabric, within };
  });
}
