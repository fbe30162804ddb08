/**
 * Tests the simulated fleet of 10,000 nodes: a region that restarts, a slow tenth, subsets and keys, with the
 * runtime's own subsets, policies and pauses.
 */
import { expect, test } from 'vitest';
import { Events } from '../../bench/fleet/events.ts';
import { evenness, hotKey, latencies, regionRestart, subsets } from '../../bench/fleet/scenarios.ts';
import { everything } from '../extent.ts';

const fleet = { clients: 9_900, servers: 100, subset: 10 };

test.each(
  [
    [1, 5_000],
    [1, 30_000],
    [2, 120_000],
  ].slice(0, everything ? 3 : 1),
)(
  'a region restarts (seed %i, down for %i ms): its clients come back evenly, and no call fails',
  (seed, downMs) => {
    const { perSecond, lost, calls, failed } = regionRestart({ seed, ...fleet }, downMs);
    expect(perSecond.reduce((sum, count) => sum + count, 0)).toBe(lost);
    expect(lost).toBeGreaterThan(25_000);
    const { fullest, steady } = evenness(perSecond, lost);
    expect(fullest / steady).toBeLessThanOrEqual(2);
    expect(calls).toBeGreaterThan(9_900 * (downMs / 1000));
    expect(failed).toBe(0);
  },
);

test.each([1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 11_000, 15_000])(
  'fewer clients come back evenly, too, after a region was down for %i ms',
  (downMs) => {
    const { perSecond, lost } = regionRestart({ seed: downMs, ...fleet, clients: 1_000 }, downMs);
    const { fullest, steady } = evenness(perSecond, lost);
    expect(fullest / steady).toBeLessThanOrEqual(2);
  },
);

test('the same seed gives the same run', () => {
  const small = { seed: 3, clients: 300, servers: 12, subset: 4 };
  expect(regionRestart(small, 5_000)).toEqual(regionRestart(small, 5_000));
  expect(regionRestart({ ...small, seed: 4 }, 5_000)).not.toEqual(regionRestart(small, 5_000));
});

test('with a slow tenth, least request has much shorter tails than round robin', () => {
  const shape = { slowShare: 0.1, slowness: 3, burst: 1, utilization: 0.6 };
  const size = { seed: 1, clients: 10, servers: 20, subset: 0 };
  const inTurn = latencies(size, 'round-robin', shape, 5);
  const least = latencies(size, 'least-request', shape, 5);
  expect(least.p99).toBeLessThan(inTurn.p99 / 2);
});

test('subsets of 10 of 100 servers: even, and only the share of a server that leaves moves', () => {
  const { maxToMean, moved, share } = subsets({ seed: 1, ...fleet, clients: 1_000 });
  expect(maxToMean).toBeLessThanOrEqual(1.5);
  expect(moved).toBeLessThanOrEqual(1.2 * share);
});

test.each([1, 2, 3])(
  'half of the load on one key (seed %i): no server is far above the mean, and caches are used',
  (seed) => {
    const plain = hotKey(seed, 1000, 20_000);
    const bounded = hotKey(seed, 1.25, 20_000);
    expect(plain.busiestToMean).toBeGreaterThan(2);
    expect(bounded.busiestToMean).toBeLessThanOrEqual(1.25);
    expect(bounded.hitRate).toBeGreaterThanOrEqual(0.9 * plain.hitRate);
  },
);

test('events run in the order of their times', () => {
  const events = new Events();
  const order: number[] = [];
  for (const ms of [5, 1, 3, 1, 4, 0, 9]) events.after(ms, () => order.push(ms));
  events.runUntil(4);
  expect(order).toEqual([0, 1, 1, 3, 4]);
  events.runUntil(9);
  expect(order).toEqual([0, 1, 1, 3, 4, 5, 9]);
});
