/**
 * Pauses between attempts, growing by 1.6 with 20 % of chance either way, as gRPC has them: many clients that lost one server do not
 * come back all at once. Used for connections, name resolution, ejected addresses and retried calls.
 */

const factor = 1.6;
const jitter = 0.2;

export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  readonly #random: () => number;
  #ms: number;

  /** `random`: 0 to 1, for tests. */
  constructor(firstMs: number, maxMs: number, random: () => number = Math.random) {
    this.#firstMs = firstMs;
    this.#maxMs = Math.max(firstMs, maxMs);
    this.#random = random;
    this.#ms = firstMs;
  }

  /** The pause before the next attempt, ms. */
  next(): number {
    const ms = this.#ms;
    this.#ms = Math.min(this.#maxMs, ms * factor);
    return ms * (1 - jitter + 2 * jitter * this.#random());
  }

  /** It worked: the next pause is a short one again. */
  reset(): void {
    this.#ms = this.#firstMs;
  }
}
