/**
 * A message whose data programs have not taken completely. A large message lies in leased memory of the
 * arena. Without a release, that memory would stay in use until it is garbage-collected, and the following
 * messages would use other memory. A Carrier makes this object on the JS thread.
 */
import type { Lease } from '../../runtime/core/lease.ts';

export class HeldMessage {
  readonly #lease: Lease;
  /** Number of writes under way, plus one while the message is being read. */
  #uses = 1;

  constructor(lease: Lease) {
    this.#lease = lease;
  }

  /** Records that a write of some of the data begins; `done()` must be called once when it has ended. */
  hold(): void {
    ++this.#uses;
  }

  readonly done = (): void => {
    if (--this.#uses === 0) this.#lease.release();
  };
}
