/**
 * How a call may be made more than once: options of calls and clients. The client's retry.ts and hedging.ts
 * do it.
 */
import type { StatusCode } from './errors/status.ts';

export interface RetryOptions {
  /** Attempts in all, 2 to 5. Default 3. */
  readonly attemptsMax?: number;
  /**
   * Pause before the second attempt, ms; each further one is 1.6 times as long. All vary by 20 %. Default 50.
   */
  readonly backoffMs?: number;
  /** Longest such pause. Default 1000. */
  readonly backoffMaxMs?: number;
  /** Errors after which the call is made again. Default: UNAVAILABLE. */
  readonly codes?: readonly StatusCode[];
}

export interface HedgingOptions {
  /** Time without an answer after which the next attempt begins, ms. 0: all at once. */
  readonly delayMs: number;
  /** Attempts in all, 2 to 5. Default 2. */
  readonly attemptsMax?: number;
  /**
   * Errors that do not end the call while other attempts may succeed; the next one begins at once. Default:
   * UNAVAILABLE.
   */
  readonly codes?: readonly StatusCode[];
}
