/**
 * Whether an application gives the leases of its answers back. One that does gets more of them, which cost nothing. For one that does not, each lease is
 * memory that comes back with a full garbage collection only: a copy, while it is not longer than this, costs a fifth of that. Of a client's session, on its
 * JS thread.
 */
import { copiedAnswerBytes } from '../limits.ts';

/** Leases that an application may keep at a time without being taken for one that forgets them. */
const keptMax = 32;
/** One answer of so many is lent all the same: the application may have come to release them. */
const probeEvery = 64;

export class LeaseHabit {
  /** Grows by one with each lease that is given, falls by two with each that is released: half of them are enough. */
  #kept = 0;
  #copied = 0;

  /** Whether an answer of so many bytes is better copied than lent. */
  copies(bytes: number): boolean {
    if (this.#kept <= keptMax || bytes > copiedAnswerBytes) return false;
    this.#copied++;
    return this.#copied % probeEvery !== 0;
  }

  lent(): void {
    // No more than that: whoever begins to release them is believed at once.
    if (this.#kept <= keptMax) this.#kept++;
  }

  released(): void {
    this.#kept = Math.max(0, this.#kept - 2);
  }
}
