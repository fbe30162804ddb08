/**
 * A token bucket: it allows an amount per second, and at most the amount of one second at once. A single
 * larger amount is allowed. After it, nothing more is allowed until the deficit is paid off. The accounts of
 * identities use this file. Times come from `clockMs()`, or are the slightly earlier time of the current
 * batch. A time that is earlier than the last time has no effect.
 */
export class TokenBucket {
  #perSecond: number;
  #left: number;
  #atMs: number;

  constructor(perSecond: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#left = perSecond;
    this.#atMs = nowMs;
  }

  get perSecond(): number {
    return this.#perSecond;
  }

  /** Changes the rate. A deficit remains. */
  change(perSecond: number, nowMs: number): void {
    this.has(nowMs);
    this.#perSecond = perSecond;
    this.#left = Math.min(this.#left, perSecond);
  }

  /** Returns whether anything is allowed now. */
  has(nowMs: number): boolean {
    if (nowMs > this.#atMs) {
      const more = ((nowMs - this.#atMs) / 1000) * this.#perSecond;
      this.#left = Math.min(this.#perSecond, this.#left + more);
      this.#atMs = nowMs;
    }
    return this.#left >= 1;
  }

  take(amount: number): void {
    this.#left -= amount;
  }
}
