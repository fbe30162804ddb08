/**
 * The ring of consistent hashing: each address has points on a circle of 32-bit numbers, as many as its
 * weight says, and a key belongs to the address of the next point. When an address leaves, only its keys
 * move, and each of its points to another neighbour. Created for a list of addresses by bounded-hash.ts.
 */
import { hashOfText, mixed } from './key-hash.ts';
import type { Listed } from './policy.ts';

/**
 * Points of an address of average weight. With this number the shares of equal addresses differ by some 8 %
 * (standard deviation), as 1 / sqrt(points).
 */
const pointsMean = 160;

/** Numbers up to 2^53 hold a point of 32 bits together with an index below this one. */
const indexes = 2 ** 12;

/**
 * Returns the points for a weight of 1. It is a power of two, since an address that comes or goes changes the
 * average weight, and the others must keep their points nevertheless.
 */
function pointsPerWeight(listed: readonly Listed[]): number {
  const total = listed.reduce((sum, { weight }) => sum + weight, 0);
  return 2 ** Math.round(Math.log2((pointsMean * listed.length) / total));
}

export class HashRing {
  /** The points in ascending order, and the index in the list of the address of each. */
  readonly #points: Uint32Array;
  readonly #owners: Uint16Array;

  constructor(listed: readonly Listed[]) {
    const scale = listed.length === 0 ? 0 : pointsPerWeight(listed);
    const made: number[] = [];
    listed.forEach(({ address, weight }, index) => {
      const count = Math.max(1, Math.round(weight * scale));
      const seed = hashOfText(address);
      for (let i = 0; i < count; ++i) made.push(mixed(seed ^ mixed(i + 1)) * indexes + index);
    });
    const sorted = Float64Array.from(made).sort();
    this.#points = Uint32Array.from(sorted, (each) => Math.floor(each / indexes));
    this.#owners = Uint16Array.from(sorted, (each) => each % indexes);
  }

  /** Number of points. */
  get size(): number {
    return this.#points.length;
  }

  /** Returns the position of the point that a hash belongs to. */
  positionOf(hash: number): number {
    const points = this.#points;
    let low = 0;
    let high = points.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (points[middle]! < hash) low = middle + 1;
      else high = middle;
    }
    return low === points.length ? 0 : low;
  }

  /** Returns the index in the list of the address at a position; positions go on after the last one. */
  ownerAt(position: number): number {
    return this.#owners[position % this.#owners.length]!;
  }
}
