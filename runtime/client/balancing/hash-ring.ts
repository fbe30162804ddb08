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
  /**
   * The position of the first point of each equal part of the circle, about one point a part: a search from
   * there takes a step or two, where a binary search of 16,000 points takes 14.
   */
  readonly #starts: Uint32Array;
  /** How many bits of a hash are the position within its part. */
  readonly #shift: number;

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
    const bits = Math.ceil(Math.log2(Math.max(2, sorted.length)));
    this.#shift = 32 - bits;
    this.#starts = new Uint32Array(2 ** bits);
    let position = 0;
    for (let part = 0; part < this.#starts.length; ++part) {
      while (position < sorted.length && this.#points[position]! >>> this.#shift < part) ++position;
      this.#starts[part] = position;
    }
  }

  /** Number of points. */
  get size(): number {
    return this.#points.length;
  }

  /** Returns the position of the point that a hash belongs to. */
  positionOf(hash: number): number {
    const points = this.#points;
    let position = this.#starts[hash >>> this.#shift]!;
    while (position < points.length && points[position]! < hash) ++position;
    return position === points.length ? 0 : position;
  }

  /** Returns the index in the list of the address at a position; positions go on after the last one. */
  ownerAt(position: number): number {
    return this.#owners[position % this.#owners.length]!;
  }
}
