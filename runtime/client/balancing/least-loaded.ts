/**
 * Least request of two random choices: the policy draws two connections, and takes the connection that has
 * fewer calls in flight for its weight. The draws are weighted, and the first connection wins a tie, so that
 * calls are spread by weight even when the servers have little to do. A slow server has more calls in flight,
 * so it gets fewer new calls. Comparing two connections is nearly as good as comparing all of them
 * (Mitzenmacher, "The power of two choices", 2001), and it keeps many clients from choosing the same idle
 * server at once. The connections of a channel use this file, and bounded-hash.ts uses it for calls without a
 * key.
 */
import { type Candidate, firstWithRoom, type Policy, type Room } from './policy.ts';

export class LeastLoaded<C extends Candidate> implements Policy<C> {
  #ready: readonly C[] = [];
  /**
   * For each connection, the sum of its weight and all weights before it. It is undefined when all weights
   * are equal.
   */
  #sums: number[] | undefined;
  readonly #random: () => number;

  /** `random` returns at least 0 and less than 1. */
  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  update(ready: readonly C[]): void {
    this.#ready = ready;
    let sum = 0;
    const sums = ready.map(({ weight }) => (sum += weight));
    this.#sums = ready.every(({ weight }) => weight === ready[0]!.weight) ? undefined : sums;
  }

  pick(room: Room<C>): C | undefined {
    const ready = this.#ready;
    if (ready.length === 0) return undefined;
    const at = this.#draw();
    const first = ready[at]!;
    let other = this.#draw();
    if (other === at) other = at + 1 === ready.length ? 0 : at + 1;
    const second = ready[other]!;
    const better = second.load / second.weight < first.load / first.weight ? second : first;
    if (room(better)) return better;
    return firstWithRoom(ready, at, room);
  }

  /** Returns a random index; the probability of each index is proportional to its weight. */
  #draw(): number {
    const sums = this.#sums;
    const { length } = this.#ready;
    if (sums === undefined) return Math.floor(this.#random() * length);
    const drawn = this.#random() * sums[length - 1]!;
    let low = 0;
    let high = length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (drawn < sums[middle]!) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
