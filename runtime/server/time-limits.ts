/**
 * The server's own time limits of calls, in addition to the clients' deadlines. The server enforces them: it
 * answers when the time has passed, since the client would wait longer or for ever.
 */

import type { SessionOptions } from '../native/native.ts';

export class TimeLimits {
  readonly #defaultUs: number;
  readonly #maxUs: number;

  /** Both in milliseconds; undefined for no limit. */
  constructor(defaultMs: number | undefined, maxMs: number | undefined) {
    this.#maxUs = maxMs === undefined ? Infinity : maxMs * 1000;
    const defaultUs = defaultMs === undefined ? this.#maxUs : defaultMs * 1000;
    const least = Math.min(defaultUs, this.#maxUs);
    this.#defaultUs = least === Infinity ? 0 : least;
  }

  /** Returns the limits for native code, which ends the transfer of large messages that clients stall. */
  get native(): NonNullable<SessionOptions['timeLimits']> {
    return {
      ...(this.#defaultUs !== 0 && { defaultUs: this.#defaultUs }),
      ...(this.#maxUs !== Infinity && { maxUs: this.#maxUs }),
    };
  }

  /**
   * Returns the limit of a call in microseconds, 0 for none, from its client's limit. If the result differs
   * from that, it is the server's own limit.
   */
  limitUs(givenUs: number): number {
    if (givenUs === 0) return this.#defaultUs;
    return Math.min(givenUs, this.#maxUs);
  }
}
