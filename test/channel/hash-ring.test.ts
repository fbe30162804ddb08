/**
 * Tests the search in the ring of consistent hashing, and the bound of loads over many servers. The calls in
 * flight are not counted for each pick.
 */
import { describe, expect, test } from 'vitest';
import { BoundedHash } from '../../runtime/client/balancing/bounded-hash.ts';
import { HashRing } from '../../runtime/client/balancing/hash-ring.ts';
import { hashOfText, mixed } from '../../runtime/client/balancing/key-hash.ts';
import { encodeMetadata } from '../../runtime/core/metadata-wire.ts';
import { Random } from '../states/random.ts';

interface Server {
  readonly address: string;
  readonly weight: number;
  load: number;
}
const servers = (count: number, weight: (i: number) => number = () => 1): Server[] =>
  Array.from({ length: count }, (_, i) => ({
    address: `10.0.${i >> 8}.${i & 255}:5000`,
    weight: weight(i),
    load: 0,
  }));

/** Returns the points of a ring as its documentation describes them, in order, each with its owner. */
function pointsOf(listed: readonly Server[]): [number, number][] {
  const total = listed.reduce((sum, { weight }) => sum + weight, 0);
  const scale = 2 ** Math.round(Math.log2((160 * listed.length) / total));
  const points = listed.flatMap(({ address, weight }, owner) =>
    Array.from({ length: Math.max(1, Math.round(weight * scale)) }, (_, i): [number, number] => [
      mixed(hashOfText(address) ^ mixed(i + 1)),
      owner,
    ]),
  );
  return points.sort(([a, one], [b, other]) => a - b || one - other);
}

describe('the ring', () => {
  test.each<[string, Server[]]>([
    ['one server', servers(1)],
    ['three', servers(3)],
    ['one with nearly all of the weight', servers(4, (i) => (i === 2 ? 1000 : 0.001))],
    ['a hundred', servers(100)],
    ['a hundred of different weights', servers(100, (i) => 1 + (i % 7))],
  ])('finds the next point of any hash: %s', (_, listed) => {
    const ring = new HashRing(listed);
    const points = pointsOf(listed);
    expect(ring.size).toBe(points.length);
    const random = new Random(1);
    const edges = points.flatMap(([point]) => [
      Math.max(0, point - 1),
      point,
      Math.min(2 ** 32 - 1, point + 1),
    ]);
    const hashes = [0, 1, 2 ** 31, 2 ** 32 - 1, ...Array.from({ length: 2000 }, () => random.below(2 ** 32))];
    for (const hash of [...hashes, ...edges.slice(0, 3000)]) {
      const position = ring.positionOf(hash);
      const [point, owner] = points[position]!;
      const before = position === 0 ? -1 : points[position - 1]![0];
      // The first point follows the last one.
      expect(hash > points.at(-1)![0] ? position === 0 : before < hash && hash <= point).toBe(true);
      expect(ring.ownerAt(position)).toBe(owner);
    }
  });
});

test.each([3, 10, 100, 250])(
  'of %i servers none has more than its share, within what began since the count',
  (count) => {
    const maxLoad = 1.25;
    const random = new Random(count);
    const all = servers(count);
    const policy = new BoundedHash<Server>(
      Buffer.from('user'),
      maxLoad,
      () => random.below(2 ** 30) / 2 ** 30,
    );
    policy.update(all, all);
    const inFlight: Server[] = [];
    const recent: number[] = [];
    for (let i = 0; i < 20_000; ++i) {
      // Half of the calls have one key, and the number of calls in flight goes up and down.
      const key = random.chance(2) ? 'hot' : `user-${random.below(500)}`;
      const chosen = policy.pick(() => true, encodeMetadata([['user', key]]))!;
      ++chosen.load;
      inFlight.push(chosen);
      // The calls were counted at most this number of picks ago, and each pick since then counts as a call.
      recent.unshift(inFlight.length);
      recent.length = Math.min(recent.length, Math.floor(count / 8) + 1);
      const counted = Math.max(...recent) + Math.floor(count / 8);
      expect(chosen.load).toBeLessThanOrEqual(Math.ceil((maxLoad * counted) / count));
      const wanted = count * (1 + (Math.floor(i / 1000) % 5));
      while (inFlight.length > wanted) --inFlight.splice(random.below(inFlight.length), 1)[0]!.load;
    }
  },
);
