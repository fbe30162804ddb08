/**
 * Generates random numbers from a seed (mulberry32). The same seed gives the same run.
 */
export class Random {
  #state = 0;

  constructor(seed: number) {
    this.restart(seed);
  }

  restart(seed: number): void {
    this.#state = Math.imul(seed, 0x9e3779b9) >>> 0;
  }

  /** Returns a number from 0 to n - 1. */
  below(n: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  chance(oneIn: number): boolean {
    return this.below(oneIn) === 0;
  }
}
