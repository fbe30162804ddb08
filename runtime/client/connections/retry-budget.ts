/**
 * The retry budget: a bucket of tokens. Each failure takes a token, and each success adds a fraction of a
 * token. When most calls fail, less than half of the tokens are left, and nothing is retried, because retries
 * would only add load. Each channel has one budget; only calls with the option `retry` or `hedging` count.
 */
import { retryTokenPerSuccess, retryTokens } from './limits.ts';

export class RetryBudget {
  #max: number = retryTokens;
  #perSuccess: number = retryTokenPerSuccess;
  #tokens: number = retryTokens;

  /**
   * Changes the size of the bucket and the part that a success adds. The bucket keeps its share of tokens.
   */
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
