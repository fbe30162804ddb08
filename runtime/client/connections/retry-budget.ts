/**
 * The retry budget: a bucket of tokens that failures take from and successes fill slowly. When most calls
 * fail, retries would only add load. One per channel; only calls with retry count.
 */
import { retryTokenPerSuccess, retryTokens } from './limits.ts';

export class RetryBudget {
  #tokens = retryTokens;

  /** True while more than half of the tokens are left. */
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
