/**
 * The ring of consistent hashing. Each address has points on a circle of 32-bit numbers; the number of its
 * points is proportional to its weight. A key belongs to the address of the next point on the circle. When an
 * address leaves, only its keys move, and they are spread over the addresses of many neighbouring points.
 * bounded-hash.ts creates this object for a list of addresses.
 */
import { hashOfText, mixed } from './key-hash.ts';
import type { Listed } from './policy.ts';

/**
 * Number of points of an address of average weight. The standard deviation of the shares of equal addresses
 * is 1 / sqrt(points), which is some 8 % with this number.
 */
const pointsMean = 160;

/** Upper bound of indexes. A number up to 2^53 holds a point of 32 bits together with an index below it. */
const indexes = 2 ** 12;

/**
 * Returns the number of points for a weight of 1, rounded to a power of two. An address that joins or leaves
 * changes the average weight a little. Because of the rounding, the other addresses keep their points.
 */
function pointsPerWeight(listed: readonly Listed[]): number {
  const total = listed.reduce((sum, { weight }) => sum + weight, 0);
  return 2 ** Math.round(Math.log2((pointsMean * listed.length) / total));
}

export class HashRing {
  /** The points in ascending order. */
  readonly #points: Uint32Array;
  /** The index in the list of each point's address. */
  readonly #owners: Uint16Array;
  /**
   * The position of the first point in each of many equal parts of the circle, with about one point in each
   * part. A search that starts there takes a step or two; a binary search of 16,000 points takes 14.
   */
  readonly #starts: Uint32Array;
  /** Number of bits of a hash that give the position within its part. */
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

  /**
   * Returns the index in the list of the address at a position. The position after the last point is 0 again.
   */
  ownerAt(position: number): number {
    return this.#owners[position % this.#owners.length]!;
  }
}
