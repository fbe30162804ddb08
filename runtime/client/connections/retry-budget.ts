/**
 * The retry budget: a bucket of tokens that failures take from and successes fill slowly. When most calls
 * fail, retries would only add load. One per channel; only calls with retry count.
 */
import { retryTokenPerSuccess, retryTokens } from './limits.ts';

export class RetryBudget {
  #max: number = retryTokens;
  #perSuccess: number = retryTokenPerSuccess;
  #tokens: number = retryTokens;

  /** Replaces the size of the bucket and what a success adds; the bucket keeps its share of tokens. */
  resize(max: number, perSuccess: number): void {
    this.#tokens *= max / this.#max;
    this.#max = max;
    this.#perSuccess = perSuccess;
  }

  /** True while more than half of the tokens are left. */
  get allows(): boolean {
    return this.#tokens > this.#max / 2;
  }

  succeeded(): void {
    this.#tokens = Math.min(this.#max, this.#tokens + this.#perSuccess);
  }

  failed(): void {
    this.#tokens = Math.max(0, this.#tokens - 1);
  }
}
