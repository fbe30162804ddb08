/**
 * The server's own time limits of calls, in addition to the clients' deadlines. When such a limit has passed,
 * the server answers the call itself, because the client would otherwise wait longer, or for ever.
 */

import type { SessionOptions } from '../native/native.ts';

export class TimeLimits {
  readonly #defaultUs: number;
  readonly #maxUs: number;

  /** Both limits are in milliseconds. Undefined means no limit. */
  constructor(defaultMs: number | undefined, maxMs: number | undefined) {
    this.#maxUs = maxMs === undefined ? Infinity : maxMs * 1000;
    const defaultUs = defaultMs === undefined ? this.#maxUs : defaultMs * 1000;
    const least = Math.min(defaultUs, this.#maxUs);
    this.#defaultUs = least === Infinity ? 0 : least;
  }

  /**
   * Returns the limits for native code. Native code ends the transfer of a large message when the client
   * stalls it.
   */
  get native(): NonNullable<SessionOptions['timeLimits']> {
    return {
      ...(this.#defaultUs !== 0 && { defaultUs: this.#defaultUs }),
      ...(this.#maxUs !== Infinity && { maxUs: this.#maxUs }),
    };
  }

  /**
   * Returns the time limit of a call in microseconds, or 0 when it has no limit. `givenUs` is the client's
   * limit. A result that differs from `givenUs` is the server's own limit.
   */
  limitUs(givenUs: number): number {
    if (givenUs === 0) return this.#defaultUs;
    return Math.min(givenUs, this.#maxUs);
  }
}
