/**
 * Options of calls and clients for making a call more than once. The client's retry.ts and hedging.ts
 * implement them.
 */
import type { StatusCode } from './errors/status.ts';

export interface RetryOptions {
  /** Limit of attempts, 2 to 5. Default 3. */
  readonly attemptsMax?: number;
  /**
   * Pause before the second attempt, in ms. Each further pause is 1.6 times as long. All pauses vary by 20 %.
   * Default 50.
   */
  readonly backoffMs?: number;
  /** Limit of the pause before an attempt, in ms. Default 1000. */
  readonly backoffMaxMs?: number;
  /** Errors after which the call is made again. Default: UNAVAILABLE. */
  readonly codes?: readonly StatusCode[];
}

export interface HedgingOptions {
  /** Time in ms without an answer after which the next attempt begins. With 0, all attempts start at once. */
  readonly delayMs: number;
  /** Limit of attempts, 2 to 5. Default 2. */
  readonly attemptsMax?: number;
  /**
   * Errors after which the next attempt begins at once, while other attempts go on. Any other error ends the
   * call. Default: UNAVAILABLE.
   */
  readonly codes?: readonly StatusCode[];
}
