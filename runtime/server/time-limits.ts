/**
 * How long calls may take as the server sees it, beside what their clients say. Such a limit is kept by the server: it answers when the time is over, since
 * the client waits for longer, or for ever.
 */

export class TimeLimits {
  readonly #defaultUs: number;
  readonly #maxUs: number;

  /** ms; undefined: none. */
  constructor(defaultMs: number | undefined, maxMs: number | undefined) {
    this.#maxUs = maxMs === undefined ? Infinity : maxMs * 1000;
    const defaultUs = defaultMs === undefined ? this.#maxUs : defaultMs * 1000;
    const least = Math.min(defaultUs, this.#maxUs);
    this.#defaultUs = least === Infinity ? 0 : least;
  }

  /** The limit of a call, in microseconds, from what its client gave; 0 is none. A different one is the server's own. */
  limitUs(givenUs: number): number {
    if (givenUs === 0) return this.#defaultUs;
    return Math.min(givenUs, this.#maxUs);
  }
}
