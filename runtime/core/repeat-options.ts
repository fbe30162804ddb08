/**
 * Options of calls and clients for making a call more than once. Implemented by the client's retry.ts and
 * hedging.ts.
 */
import type { StatusCode } from './errors/status.ts';

export interface RetryOptions {
  /** Limit of attempts, 2 to 5. Default 3. */
  readonly attemptsMax?: number;
  /**
   * Pause before the second attempt, in ms; each further pause is 1.6 times as long. All vary by 20 %.
   * Default 50.
   */
  readonly backoffMs?: number;
  /** Limit of such a pause, in ms. Default 1000. */
  readonly backoffMaxMs?: number;
  /** Errors after which the call is made again. Default: UNAVAILABLE. */
  readonly codes?: readonly StatusCode[];
}

export interface HedgingOptions {
  /** Time in ms without an answer after which the next attempt begins. 0 starts all at once. */
  readonly delayMs: number;
  /** Limit of attempts, 2 to 5. Default 2. */
  readonly attemptsMax?: number;
  /**
   * Errors that do not end the call while other attempts may succeed; the next attempt begins at once.
   * Default: UNAVAILABLE.
   */
  readonly codes?: readonly StatusCode[];
}
