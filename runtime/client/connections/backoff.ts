/**
 * Exponential backoff: pauses between attempts that grow by 1.6 with 20 % jitter, as in gRPC. Used for
 * connections, name resolution, ejected addresses and retried calls. With 20 % jitter, thousands of clients
 * that lost one server at the same moment would still return within a second or two of each other. Therefore
 * long pauses of connections are spread. The first two are fully random, from 0 to twice their mean. After
 * them, the attempts of all clients are evenly distributed in time. Later pauses are between half and one and
 * a half of their mean, which preserves this distribution. Fully random pauses would not preserve it. Among
 * the clients that wait at any moment, more would return soon than late, and clients that drew a short pause
 * again and again would come last.
 */

const factor = 1.6;
const jitter = 0.2;
/** The growth of the pauses of connections, their jitter, and how many of them are fully random. */
const spread = { factor: 1.8, jitter: 0.5, fullyRandom: 2 } as const;

export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  readonly #random: () => number;
  readonly #anyFromMs: number;
  #ms: number;
  /** Number of long pauses since the last success. */
  #long = 0;

  /**
   * `random` returns a number from 0 to 1, and is given by tests. Pauses of at least `anyFromMs` are spread.
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
    const isLong = ms >= this.#anyFromMs;
    this.#ms = Math.min(this.#maxMs, ms * (isLong ? spread.factor : factor));
    const chance = isLong ? (this.#long++ < spread.fullyRandom ? 1 : spread.jitter) : jitter;
    return ms * (1 - chance + 2 * chance * this.#random());
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

  /** Called after a success: the next pause is short again. */
  reset(): void {
    this.#ms = this.#firstMs;
    this.#long = 0;
  }
}
