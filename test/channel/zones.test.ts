/** Tests zones, subsets, and weights by load reports: the policies alone. */
import { describe, expect, test } from 'vitest';
import { ByReports } from '../../runtime/client/balancing/by-reports.ts';
import { InTurn } from '../../runtime/client/balancing/in-turn.ts';
import { LoadWeight } from '../../runtime/client/balancing/load-weight.ts';
import type { Candidate, Policy } from '../../runtime/client/balancing/policy.ts';
import { subsetOf } from '../../runtime/client/balancing/subset.ts';
import { Zones } from '../../runtime/client/balancing/zones.ts';
import { policyOf } from '../../runtime/client/connections/policies.ts';
import { encodeMetadata } from '../../runtime/core/metadata-wire.ts';
import { Metadata } from '../../runtime/index.ts';
import { Random } from '../states/random.ts';

class Server implements Candidate {
  readonly address: string;
  readonly zone: string;
  readonly weight: number;
  load = 0;
  full = false;
  picked = 0;
  reported = 0;
  constructor(address: string, zone = '', weight = 1) {
    this.address = address;
    this.zone = zone;
    this.weight = weight;
  }
  reportedWeight(): number {
    return this.reported;
  }
}

const room = ({ full }: Server): boolean => !full;
const seeded = (seed: number): (() => number) => {
  const random = new Random(seed);
  return () => random.below(2 ** 30) / 2 ** 30;
};
const zoned = (near: number, far: number): Server[] => [
  ...Array.from({ length: near }, (_, i) => new Server(`near-${i}:1`, 'near')),
  ...Array.from({ length: far }, (_, i) => new Server(`far-${i}:1`, 'far')),
];
const zones = (make: () => Policy<Server> = () => new InTurn()): Zones<Server> =>
  new Zones('near', make, seeded(1));

/** Returns the share of calls that stay in the zone. */
function nearShare(policy: Policy<Server>, all: readonly Server[], ready: readonly Server[]): number {
  policy.update(ready, all);
  for (const each of all) each.picked = 0;
  for (let i = 0; i < 20_000; ++i) ++policy.pick(room, undefined)!.picked;
  return all.reduce((sum, { zone, picked }) => sum + (zone === 'near' ? picked : 0), 0) / 20_000;
}

describe('zones', () => {
  test.each<[string, number, number, number, number, number]>([
    ['all are ready', 10, 10, 10, 10, 1],
    ['the capacity to spare covers the missing ones', 10, 8, 10, 10, 1],
    ['just enough', 7, 5, 7, 7, 1],
    ['half of the zone is ready', 10, 5, 10, 10, 0.7],
    ['little of the zone is ready', 10, 2, 30, 30, 0.28],
    ['nothing of the zone is ready', 10, 0, 10, 10, 0],
    ['the zone has no server', 0, 0, 10, 10, 0],
    ['there is no other zone', 10, 5, 0, 0, 1],
    ['the others are down', 10, 10, 10, 0, 1],
    ['both are short: each takes its part', 10, 3, 10, 8, 0.42],
    ['below the panic threshold: by the ready servers', 10, 2, 10, 6, 0.25],
  ])('%s', (_, near, nearReady, far, farReady, share) => {
    const all = zoned(near, far);
    const ready = [...all.slice(0, nearReady), ...all.slice(near, near + farReady)];
    expect(nearShare(zones(), all, ready)).toBeCloseTo(share, 1);
  });

  test('the policy and its weights apply within a zone', () => {
    const all = [new Server('a:1', 'near', 3), new Server('b:1', 'near', 1), new Server('c:1', 'far', 9)];
    nearShare(zones(), all, all);
    expect(all.map(({ picked }) => picked)).toEqual([15_000, 5_000, 0]);
  });

  test('full windows send calls to the other zone, in both directions', () => {
    const all = zoned(1, 1);
    const policy = zones();
    policy.update(all, all);
    all[0]!.full = true;
    expect(policy.pick(room, undefined)).toBe(all[1]);
    all[1]!.full = true;
    expect(policy.pick(room, undefined)).toBeUndefined();
    policy.update([all[1]!], all);
    expect(policy.pick(room, undefined)).toBeUndefined();
  });

  test('the same keys leave the zone each time', () => {
    const all = zoned(10, 10);
    const settings = {
      loadBalancing: 'consistent-hash',
      consistentHash: { metadataKey: 'user', maxLoad: 1000 },
      loadReports: { blackoutMs: 0, expirationMs: 1, updateMs: 1, errorPenalty: 1 },
      zone: 'near',
      connectionsPerAddress: 1,
    } as const;
    const keyed = (i: number): Uint8Array => encodeMetadata(new Metadata({ user: `${i}` }));
    const picks = (seed: number, ready: readonly Server[]): Server[] => {
      const policy = policyOf<Server>(settings, seeded(seed));
      policy.update(ready, all);
      return Array.from({ length: 2000 }, (_, i) => policy.pick(room, keyed(i))!);
    };
    const half = [...all.slice(0, 5), ...all.slice(10)];
    const gone = picks(1, half);
    expect(picks(2, half)).toEqual(gone);
    const stayed = gone.filter(({ zone }) => zone === 'near').length / 2000;
    expect(stayed).toBeCloseTo(0.7, 1);
    expect(picks(3, all).every(({ zone }) => zone === 'near')).toBe(true);
  });
});

describe('subsets', () => {
  const servers = Array.from({ length: 100 }, (_, i) => new Server(`10.0.0.${i}:5000`, `zone-${i % 4}`));
  const clients = Array.from({ length: 1000 }, (_, i) => `client-${i}`);

  test('10 of 100 servers for 1,000 clients are chosen evenly, and only the share of a server that leaves moves', () => {
    const counts = new Map<Server, number>();
    const left = servers.slice(1);
    let moved = 0;
    for (const client of clients) {
      const before = subsetOf(servers, client, 10, '');
      expect(new Set(before).size).toBe(10);
      for (const server of before) counts.set(server, (counts.get(server) ?? 0) + 1);
      moved += subsetOf(left, client, 10, '').filter((server) => !before.includes(server)).length;
    }
    const mean = (clients.length * 10) / servers.length;
    expect(Math.max(...counts.values()) / mean).toBeLessThan(1.5);
    expect(moved).toBe(counts.get(servers[0]!));
    expect(moved).toBeLessThanOrEqual(1.2 * counts.get(servers[0]!)!);
  });

  test.each<[string, number, string, number]>([
    ['two thirds of its own zone', 9, 'zone-1', 6],
    ['all of a zone that has fewer', 60, 'zone-1', 25],
    ['no server of a zone that is not there', 10, 'zone-9', 0],
  ])('%s', (_, size, zone, near) => {
    const subset = subsetOf(servers, 'me', size, zone);
    expect(subset).toHaveLength(size);
    expect(subset.filter((server) => server.zone === zone)).toHaveLength(near);
  });

  test('servers of other zones fill the subset when the own zone has too few', () => {
    const all = [...zoned(10, 2)];
    const subset = subsetOf(all, 'me', 9, 'near');
    expect(subset.filter(({ zone }) => zone === 'near')).toHaveLength(7);
  });

  test('a list that is not longer than the subset is used unchanged, and so is any list with size 0', () => {
    expect(subsetOf(servers, 'me', 100, '')).toBe(servers);
    expect(subsetOf(servers, 'me', 0, '')).toBe(servers);
  });
});

describe('weights by load reports', () => {
  const settings = { blackoutMs: 10_000, expirationMs: 180_000, errorPenalty: 1 };

  test.each<[string, { qps: number; eps: number; utilization: number }, number]>([
    ['calls per second by utilization', { qps: 100, eps: 0, utilization: 0.5 }, 200],
    ['errors count as utilization', { qps: 100, eps: 50, utilization: 0.5 }, 100],
    ['without calls there is no weight', { qps: 0, eps: 0, utilization: 0.5 }, 0],
    ['without utilization there is none', { qps: 100, eps: 100, utilization: 0 }, 0],
    ['a weight that is no number is ignored', { qps: Number.MAX_VALUE, eps: 0, utilization: 1e-300 }, 0],
  ])('%s', (_, report, weight) => {
    const loads = new LoadWeight(settings);
    loads.report(report, 0);
    expect(loads.at(10_000)).toBe(weight);
  });

  test('a weight counts after the blackout, until it expires, and then after another blackout', () => {
    const loads = new LoadWeight(settings);
    const report = { qps: 100, eps: 0, utilization: 1 };
    loads.report(report, 1_000);
    expect([1_000, 10_999, 11_000].map((nowMs) => loads.at(nowMs))).toEqual([0, 0, 100]);
    loads.report(report, 100_000);
    expect([279_999, 280_000].map((nowMs) => loads.at(nowMs))).toEqual([100, 0]);
    loads.report(report, 300_000);
    expect([309_999, 310_000].map((nowMs) => loads.at(nowMs))).toEqual([0, 100]);
  });

  test.each<[string, number[], number[]]>([
    ['by the reports', [100, 300], [1000, 3000]],
    ['the mean where there is none', [100, 300, 0], [667, 2000, 1333]],
    ['with one report the weights of the list', [100, 0], [2000, 2000]],
    ['the mean of weights whose sum is no number', [1e308, 1e308, 0], [1333, 1333, 1333]],
  ])('turns %s', (_, reported, picked) => {
    let nowMs = 0;
    const all = reported.map((weight, i) => {
      const server = new Server(`${i}:1`);
      server.reported = weight;
      return server;
    });
    const policy = new ByReports<Server>(1000, () => nowMs);
    policy.update(all);
    for (let i = 0; i < 4000; ++i) {
      ++policy.pick(room)!.picked;
      nowMs += 10;
    }
    for (const [i, server] of all.entries()) expect(Math.abs(server.picked - picked[i]!)).toBeLessThan(10);
  });
});
