/**
 * Exponential backoff: pauses between attempts that grow by 1.6 with 20 % jitter, as in gRPC. This file is
 * used for name resolution, registries, ejected addresses and retried calls, and for connections with
 * `spread`.
 *
 * Thousands of clients that lost one server at the same moment would return together, because 20 % jitter
 * only blurs the moments at which all of them try. Therefore pauses can be spread: each client draws a first
 * pause between 1/1.8 of its length and its length, evenly on a logarithmic scale, and then grows it by 1.8.
 * At each moment some client then makes an attempt, after short outages and after long ones. When the server
 * is back after a time t, its clients return between t and 1.8 t. Jitter makes this only a little longer.
 * When the pauses have reached their limit, the attempts of all clients are spread evenly over a time of that
 * length.
 */

const factor = 1.6;
const jitter = 0.2;
/**
 * The factor by which spread pauses grow. A larger factor spreads clients over a longer time after an outage.
 */
const spreadFactor = 1.8;

export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  readonly #random: () => number;
  readonly #spread: boolean;
  #ms: number;

  /**
   * `random` returns a number from 0 to 1, and is given by tests. `spread` selects the spread pauses, which
   * are described above.
   */
  constructor(firstMs: number, maxMs: number, random: () => number = Math.random, spread = false) {
    this.#firstMs = firstMs;
    this.#maxMs = Math.max(firstMs, maxMs);
    this.#random = random;
    this.#spread = spread;
    this.#ms = this.#first();
  }

  /** Returns the pause before the next attempt, in milliseconds. */
  next(): number {
    const ms = this.#ms;
    this.#ms = Math.min(this.#maxMs, ms * (this.#spread ? spreadFactor : factor));
    return ms * (1 - jitter + 2 * jitter * this.#random());
  }

  /**
   * Returns the pause before the next attempt when the server has requested a pause of `ms`. The result is
   * the requested pause plus some jitter, at most this side's longest pause and at least its first pause.
   * Therefore a server that always requests 0 cannot keep this side busy.
   */
  asked(ms: number): number {
    const within = Math.min(Math.max(ms, this.#firstMs), this.#maxMs);
    return within * (1 + jitter * this.#random());
  }

  /** Runs after a success: the next pause is short again. */
  reset(): void {
    this.#ms = this.#first();
  }

  #first(): number {
    return this.#spread ? this.#firstMs * spreadFactor ** -this.#random() : this.#firstMs;
  }
}
