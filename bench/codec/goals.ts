/**
 * The goals of the codec benchmark, as ratios within one run. The report uses this file.
 */
import type { Verdict } from '../goals.ts';
import type { Bundle } from './bundle.ts';
import { asCalls, type Direction } from './candidates.ts';
import type { Speed } from './speed.ts';
import { stringsDominate } from './values.ts';

const protobufjs = 'protobufjs static';
const protobufEs = 'protobuf-es';

export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/**
 * Returns how many times faster our codec is. The figure is the median of the rounds' own ratios, because a
 * slowdown of the machine affects both peers of a round.
 */
export function timesFaster(ours: readonly number[], theirs: readonly number[]): number {
  return median(ours.map((figure, round) => (theirs[round] ?? Number.NaN) / figure));
}

/** Returns the smallest ratio that a goal requires, against each peer. */
function least(speed: Speed, direction: Direction): readonly [peer: string, ratio: number][] {
  if (direction === 'encode')
    return [
      [protobufjs, 2],
      [protobufEs, 4],
    ];
  return [
    [protobufjs, stringsDominate(speed.case) ? 1 : 1.2],
    [protobufEs, 2],
  ];
}

export function judge(speeds: readonly Speed[], bundles: readonly Bundle[]): Verdict[] {
  const own = speeds.filter(({ peer }) => peer === asCalls);
  const fast = (['encode', 'decode'] as const).flatMap((direction) =>
    own.flatMap((speed) =>
      least(speed, direction).map(([peer, ratio]): Verdict => {
        const theirs = speeds.find((other) => other.case === speed.case && other.peer === peer);
        const times = theirs && timesFaster(speed[direction], theirs[direction]);
        return {
          goal: `${direction} ${speed.case.name}: at least ${ratio} × ${peer}`,
          found: times === undefined ? 'not run' : `${times.toFixed(2)} ×`,
          reached: times === undefined ? undefined : times >= ratio,
        };
      }),
    ),
  );
  const small = bundles
    .filter(({ peer }) => peer === 'rdma-rpc')
    .map(({ what, bytes }): Verdict => {
      const theirs = bundles.find((other) => other.what === what && other.peer === protobufEs);
      const found = theirs === undefined ? 'not run' : `${bytes} B against ${theirs.bytes} B`;
      return {
        goal: `bundle of ${what} alone: at most ${protobufEs}'s`,
        found,
        reached: theirs && bytes <= theirs.bytes,
      };
    });
  return [...fast, ...small];
}
