/**
 * How long calls may take as the server sees it, beside what their clients say. Such a limit is kept by the
 * server: it answers when the time is over, since the client waits for longer, or for ever.
 */

import type { SessionOptions } from '../native/native.ts';

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

  /** The same for native code, which ends large messages that their clients keep waiting. */
  get native(): NonNullable<SessionOptions['timeLimits']> {
    return {
      ...(this.#defaultUs !== 0 && { defaultUs: this.#defaultUs }),
      ...(this.#maxUs !== Infinity && { maxUs: this.#maxUs }),
    };
  }

  /**
   * The limit of a call, in microseconds, from what its client gave; 0 is none. A different one is the
   * server's own.
   */
  limitUs(givenUs: number): number {
    if (givenUs === 0) return this.#defaultUs;
    return Math.min(givenUs, this.#maxUs);
  }
}
