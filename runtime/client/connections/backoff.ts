/**
 * Pauses between attempts, growing by 1.6 with 20 % of chance either way, as gRPC has them. Used for
 * connections, name resolution, ejected addresses and retried calls. Thousands of clients that lost one
 * server in the same moment would still come back within a second or two of each other, however long their
 * pauses: those of connections, once they are long, are anything from 0 to twice as long.
 */

const factor = 1.6;
const jitter = 0.2;

export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  readonly #random: () => number;
  readonly #anyFromMs: number;
  #ms: number;

  /**
   * `random`: 0 to 1, for tests. `anyFromMs`: pauses from here on are left to chance altogether, the mean is
   * the same.
   */
  constructor(
    firstMs: number,
    maxMs: number,
    random: () => number = Math.random,
    anyFromMs = Number.POSITIVE_INFINITY,
  ) {
    this.#firstMs = firstMs;
    this.#maxMs = Math.max(firstMs, maxMs);
    this.#random = random;
    this.#anyFromMs = anyFromMs;
    this.#ms = firstMs;
  }

  /** The pause before the next attempt, ms. */
  next(): number {
    const ms = this.#ms;
    this.#ms = Math.min(this.#maxMs, ms * factor);
    const chance = ms < this.#anyFromMs ? jitter : 1;
    return ms * (1 - chance + 2 * chance * this.#random());
  }

  /**
   * The pause before the next attempt when the server has asked for one: no shorter, except that it is never
   * longer than the longest of this side's own, and a little of chance. Nor is it shorter than the first: a
   * server that says 0 each time would keep this side at work.
   */
  asked(ms: number): number {
    const within = Math.min(Math.max(ms, this.#firstMs), this.#maxMs);
    return within * (1 + jitter * this.#random());
  }

  /** It worked: the next pause is a short one again. */
  reset(): void {
    this.#ms = this.#firstMs;
  }
}
