/**
 * Exponential backoff: pauses between attempts that grow by 1.6 with 20 % jitter, as in gRPC. Used for
 * connections, name resolution, ejected addresses and retried calls. With 20 % jitter, thousands of clients
 * that lost one server at the same moment would still return within a second or two of each other. Therefore
 * long pauses of connections are fully random, from 0 to twice their mean.
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
   * Pauses of at least `anyFromMs` are fully random, with the same mean. `random` returns a number from 0 to
   * 1; tests replace it.
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

  /** Returns the pause before the next attempt, in milliseconds. */
  next(): number {
    const ms = this.#ms;
    this.#ms = Math.min(this.#maxMs, ms * factor);
    const chance = ms < this.#anyFromMs ? jitter : 1;
    return ms * (1 - chance + 2 * chance * this.#random());
  }

  /**
   * Returns the pause before the next attempt when the server has requested a pause of `ms`. The result is
   * the requested pause plus some jitter, at most this side's longest pause and at least its first pause. So
   * a server that always requests 0 cannot keep this side busy.
   */
  asked(ms: number): number {
    const within = Math.min(Math.max(ms, this.#firstMs), this.#maxMs);
    return within * (1 + jitter * this.#random());
  }

  /** Called after a success: the next pause is short again. */
  reset(): void {
    this.#ms = this.#firstMs;
  }
}
