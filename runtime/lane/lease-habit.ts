/**
 * Whether an application gives the leases of its answers back. One that does gets more of them, which cost
 * nothing. For one that does not, each is memory that comes back with a full garbage collection only, and a
 * copy is cheaper as long as it is short (docs/ARCHITECTURE.md). Of a client's session, on its JS thread.
 */
import { copiedAnswerBytes, leaseProbeEvery, leasesKeptMax } from '../limits.ts';

export class LeaseHabit {
  /**
   * Grows by one with each lease that is given, falls by two with each that is released: half of them are
   * enough.
   */
  #kept = 0;
  #copied = 0;

  /** Whether an answer of so many bytes is better copied than lent. */
  copies(bytes: number): boolean {
    if (this.#kept <= leasesKeptMax || bytes > copiedAnswerBytes) return false;
    this.#copied++;
    return this.#copied % leaseProbeEvery !== 0;
  }

  lent(): void {
    // No more than that: whoever begins to release them is believed at once.
    if (this.#kept <= leasesKeptMax) this.#kept++;
  }

  released(): void {
    this.#kept = Math.max(0, this.#kept - 2);
  }
}
