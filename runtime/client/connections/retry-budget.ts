/**
 * How many calls may be made again: a bucket of tokens that failures take from and successes fill slowly.
 * When most calls fail, making them again would only add load. One per channel; only calls that may be
 * repeated count.
 */
import { retryTokenPerSuccess, retryTokens } from './limits.ts';

export class RetryBudget {
  #tokens = retryTokens;

  /** More than half of the tokens are there. */
  get allows(): boolean {
    return this.#tokens > retryTokens / 2;
  }

  succeeded(): void {
    this.#tokens = Math.min(retryTokens, this.#tokens + retryTokenPerSuccess);
  }

  failed(): void {
    this.#tokens = Math.max(0, this.#tokens - 1);
  }
}
