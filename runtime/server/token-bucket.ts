/**
 * So much of something a second, and at most a second's worth at once. What comes in one piece may be larger
 * than that: what is missing is then paid off before anything more is had. Used by the accounts of
 * identities. Times are those of `clockMs()`, or of the batch that is worked on, which lie a little before
 * it: one before the last changes nothing.
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

  /** Another rate from now on. What is owed stays so. */
  change(perSecond: number, nowMs: number): void {
    this.has(nowMs);
    this.#perSecond = perSecond;
    this.#left = Math.min(this.#left, perSecond);
  }

  /** Whether anything may be had. */
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
