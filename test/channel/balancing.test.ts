/**
 * Tests the policies alone: how calls are spread, by weight and by key, and which keys move when an address
 * leaves.
 */
import { describe, expect, test } from 'vitest';
import { BoundedHash } from '../../runtime/client/balancing/bounded-hash.ts';
import { HashRing } from '../../runtime/client/balancing/hash-ring.ts';
import { InTurn } from '../../runtime/client/balancing/in-turn.ts';
import { hashOfText, keyHash } from '../../runtime/client/balancing/key-hash.ts';
import { LeastLoaded } from '../../runtime/client/balancing/least-loaded.ts';
import type { Candidate, Policy } from '../../runtime/client/balancing/policy.ts';
import { encodeMetadata } from '../../runtime/core/metadata-wire.ts';
import { Metadata } from '../../runtime/index.ts';
import { Random } from '../states/random.ts';

class Server implements Candidate {
  readonly address: string;
  readonly weight: number;
  load = 0;
  full = false;
  picked = 0;
  constructor(address: string, weight = 1) {
    this.address = address;
    this.weight = weight;
  }
}

const room = ({ full }: Server): boolean => !full;
const servers = (...weights: number[]): Server[] =>
  weights.map((weight, i) => new Server(`10.0.0.${i + 1}:5000`, weight));
const equal = (count: number): Server[] => servers(...new Array<number>(count).fill(1));
const seeded = (seed: number): (() => number) => {
  const random = new Random(seed);
  return () => random.below(2 ** 30) / 2 ** 30;
};
const key = Buffer.from('session-id');
const keyed = (value: string): Uint8Array =>
  encodeMetadata(new Metadata({ other: 'x', 'session-id': value, 'session-id-2': 'y' }))!;

const policies: [string, () => Policy<Server>][] = [
  ['round robin', () => new InTurn()],
  ['least request', () => new LeastLoaded(seeded(1))],
  ['consistent hash', () => new BoundedHash(key, 1.25, seeded(1))],
];

function spread(policy: Policy<Server>, all: Server[], calls: number, metadata?: (i: number) => Uint8Array) {
  policy.update(all, all);
  for (let i = 0; i < calls; ++i) ++policy.pick(room, metadata?.(i))!.picked;
  return all.map(({ picked }) => picked);
}

describe.each(policies)('%s', (_, make) => {
  test.each([[[1, 1, 1, 1]], [[1, 2, 3, 4]], [[0.5, 100, 50]], [[7]]])(
    'spreads idle calls by weight: %j',
    (weights) => {
      const calls = 40_000;
      const sum = weights.reduce((all, weight) => all + weight, 0);
      spread(make(), servers(...weights), calls).forEach((picked, i) => {
        expect(Math.abs(picked / calls - weights[i]! / sum)).toBeLessThan(0.01);
      });
    },
  );

  test('skips connections without room, and chooses none when all are full', () => {
    for (const weights of [
      [1, 1, 1],
      [1000, 1000, 0.001],
    ]) {
      const all = servers(...weights);
      const policy = make();
      policy.update(all, all);
      all[0]!.full = all[1]!.full = true;
      for (let i = 0; i < 100; ++i) expect(policy.pick(room, keyed(`${i}`))).toBe(all[2]);
      all[2]!.full = true;
      expect(policy.pick(room, keyed('a'))).toBeUndefined();
      expect(policy.pick(room, undefined)).toBeUndefined();
    }
  });

  test('chooses none when there is no connection', () => {
    const policy = make();
    policy.update([], equal(3));
    expect(policy.pick(room, undefined)).toBeUndefined();
    expect(policy.pick(room, keyed('a'))).toBeUndefined();
  });

  test('chooses only connections that are ready', () => {
    const all = equal(5);
    const policy = make();
    policy.update(all, all);
    policy.pick(room, keyed('a'));
    policy.update([all[1]!, all[4]!], all);
    const taken = new Set<string>();
    for (let i = 0; i < 200; ++i)
      taken.add(policy.pick(room, i % 2 === 0 ? undefined : keyed(`${i}`))!.address);
    expect([...taken].sort()).toEqual([all[1]!.address, all[4]!.address]);
  });
});

describe('round robin', () => {
  test.each<[number[], string]>([
    [[1, 1, 1], '012012012'],
    [[2, 1], '001001001'],
    [[1, 2], '101101101'],
    [[0.1, 1], '11111111101111111111011'],
  ])('with weights %j takes %s', (weights, order) => {
    const all = servers(...weights);
    const policy = new InTurn<Server>();
    policy.update(all);
    expect([...order].map(() => all.indexOf(policy.pick(room)!)).join('')).toBe(order);
  });
});

test('round robin begins at a random connection, and keeps its position when a connection leaves', () => {
  const all = equal(4);
  const firsts = new Set(
    Array.from({ length: 40 }, (_, seed) => {
      const policy = new InTurn<Server>(seeded(seed));
      policy.update(all);
      return policy.pick(room);
    }),
  );
  expect(firsts.size).toBe(4);
  const policy = new InTurn<Server>();
  policy.update(all);
  policy.pick(room);
  policy.update(all.slice(0, 3));
  expect(policy.pick(room)).toBe(all[1]);
});

describe('least request', () => {
  /** A call begins at each step. Each server ends one of its calls every `every` steps. */
  function deepest(policy: Policy<Server>, all: Server[], every: readonly number[]): number[] {
    policy.update(all, all);
    const most = all.map(() => 0);
    for (let step = 1; step <= 20_000; ++step) {
      ++policy.pick(room, undefined)!.load;
      all.forEach((server, i) => {
        most[i] = Math.max(most[i]!, server.load);
        if (step % every[i]! === 0 && server.load > 0) --server.load;
      });
    }
    return most;
  }

  test('gives a slow server fewer calls, whereas round robin lets its queue grow', () => {
    const every = [3, 3, 3, 12];
    expect(deepest(new LeastLoaded(seeded(3)), equal(4), every)[3]).toBeLessThan(12);
    expect(deepest(new InTurn(), equal(4), every)[3]).toBeGreaterThan(1000);
  });

  test('compares calls in flight per weight', () => {
    const [heavy, light] = servers(4, 1) as [Server, Server];
    const policy = new LeastLoaded<Server>(seeded(4));
    policy.update([heavy, light]);
    heavy.load = 3;
    light.load = 1;
    for (let i = 0; i < 50; ++i) expect(policy.pick(room)).toBe(heavy);
    heavy.load = 5;
    for (let i = 0; i < 50; ++i) expect(policy.pick(room)).toBe(light);
  });
});

describe('consistent hash', () => {
  const keys = Array.from({ length: 20_000 }, (_, i) => `user-${i}`);
  const homes = (ring: HashRing): number[] =>
    keys.map((each) => ring.ownerAt(ring.positionOf(hashOfText(each))));

  test.each([
    ['10 equal ones', equal(10)],
    ['100 equal ones', equal(100)],
    ['weights', servers(10, 20, 30, 40, 20, 25)],
  ])('of %s, only the keys of an address that leaves move, and they are its share', (_, all) => {
    const before = homes(new HashRing(all));
    const total = all.reduce((sum, { weight }) => sum + weight, 0);
    for (const [gone, { weight }] of all.entries()) {
      const left = all.filter((_, i) => i !== gone);
      const moved = homes(new HashRing(left)).filter((owner, i) => left[owner] !== all[before[i]!]);
      expect(moved.length).toBe(before.filter((owner) => owner === gone).length);
      expect(Math.abs((moved.length / keys.length) * (total / weight) - 1)).toBeLessThan(0.35);
    }
  });

  test('an address whose connection is lost gets the same keys back later', () => {
    const all = equal(8);
    const policy = new BoundedHash<Server>(key, 1.25);
    const picks = (): Server[] => keys.slice(0, 2000).map((each) => policy.pick(room, keyed(each))!);
    policy.update(all, all);
    const before = picks();
    policy.update(all.slice(1), all);
    const without = picks();
    expect(without.every((each, i) => each === before[i] || before[i] === all[0])).toBe(true);
    expect(new Set(without.filter((_, i) => before[i] === all[0])).size).toBe(7);
    policy.update(all, all);
    expect(picks()).toEqual(before);
  });

  test('hashes stay the same between versions, since clients of two versions must agree', () => {
    expect(['', 'a', 'user-1'].map(hashOfText)).toEqual([2872998923, 444641715, 2005895916]);
    expect(keyHash(keyed('user-1'), key)).toBe(hashOfText('user-1'));
    expect(keyHash(encodeMetadata(new Metadata({ 'session-i': 'a' }))!, key)).toBe(-1);
    const long = 'x'.repeat(4000);
    expect(keyHash(encodeMetadata(new Metadata({ a: long, 'session-id': long }))!, key)).toBe(
      hashOfText(long),
    );
  });

  /**
   * Keeps 200 calls in flight on 10 servers. Half of the calls have the same key, and the others have 2,000
   * keys; each server has a cache of 500 keys. Returns the share of calls that found their key in the cache,
   * and the highest ratio of a server's load to its allowed load.
   */
  function underLoad(maxLoad: number, seed: number): { hits: number; above: number } {
    const random = new Random(seed);
    const all = equal(10);
    const policy = new BoundedHash<Server>(key, maxLoad, seeded(seed));
    policy.update(all, all);
    const caches = new Map(all.map((server) => [server, new Set<string>()]));
    const inFlight: Server[] = [];
    const calls = 40_000;
    let hits = 0;
    let above = 0;
    for (let i = 0; i < calls; ++i) {
      if (inFlight.length === 200) {
        const [ended] = inFlight.splice(random.below(200), 1);
        --ended!.load;
      }
      const value = random.chance(2) ? 'hot' : `user-${random.below(2000)}`;
      const server = policy.pick(room, keyed(value))!;
      ++server.load;
      inFlight.push(server);
      above = Math.max(above, server.load - Math.ceil((maxLoad * inFlight.length) / all.length));
      const cache = caches.get(server)!;
      if (cache.delete(value)) ++hits;
      cache.add(value);
      if (cache.size > 500) for (const oldest of [...cache].slice(0, 1)) cache.delete(oldest);
    }
    return { hits: hits / calls, above };
  }

  test('when half of the load has one key, no server exceeds the bound, and caches are still used', () => {
    for (const seed of [1, 2, 3]) {
      const plain = underLoad(1000, seed);
      const bounded = underLoad(1.25, seed);
      expect(bounded.above).toBeLessThanOrEqual(0);
      expect(bounded.hits).toBeGreaterThan(0.9 * plain.hits);
    }
  });
});
