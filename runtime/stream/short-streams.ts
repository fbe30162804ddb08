/**
 * The streams of one session that have found no room in the arena for their next message. They wait in order.
 * When memory comes free, streams are tried from the head on, until one finds none again: each attempt
 * encodes a message, so hundreds of streams that wait would otherwise take the loop from everybody else with
 * each block that comes free. Both ends have one; on the JS thread of their session.
 */
import type { SlotWaiter } from '../boundary/after-batch.ts';
import type { FabricContext } from '../boundary/fabric-context.ts';

/** What of a context is used. */
export interface MemorySource extends Pick<FabricContext, 'awaitMemory'> {
  readonly outgoing: { readonly bulk: { readonly shortBytes: number } };
}

export class ShortStreams<S extends SlotWaiter> implements SlotWaiter {
  readonly #context: MemorySource;
  readonly #waiting = new Set<S>();
  /** The one that is tried once more. */
  #trying: S | undefined;
  /**
   * What has come of that: it waits again, for memory and not for a registration, and it has sent something
   * before.
   */
  #waits = false;
  #stillShort = false;
  #moved = false;

  constructor(context: MemorySource) {
    this.#context = context;
  }

  /** Streams that wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /**
   * The stream is tried again when memory is back: it keeps its place, or becomes the last. Returns false
   * when none will come by itself.
   */
  add(stream: S): boolean {
    if (!this.#context.awaitMemory(this)) return false;
    if (this.#trying === stream) {
      this.#waits = true;
      // Its own buffer is being registered: that keeps no other one waiting.
      this.#stillShort = this.#context.outgoing.bulk.shortBytes !== 0;
    }
    this.#waiting.add(stream);
    return true;
  }

  /** The stream has sent a part. */
  sent(stream: S): void {
    if (this.#trying === stream) this.#moved = true;
  }

  /** The stream is over. The others may have waited for memory that only it could not be content with. */
  leave(stream: S): void {
    const [head] = this.#waiting;
    this.#waiting.delete(stream);
    if (head === stream) this.onSlotsFree();
  }

  /** The session is over. */
  stop(): void {
    this.#waiting.clear();
  }

  onSlotsFree(): void {
    if (this.#trying !== undefined) return;
    for (const stream of this.#waiting) {
      this.#trying = stream;
      this.#waits = this.#stillShort = this.#moved = false;
      try {
        stream.onSlotsFree();
      } finally {
        this.#trying = undefined;
      }
      // One that has had its turn waits behind the others for the next one.
      if (!this.#waits || this.#moved) this.#waiting.delete(stream);
      if (this.#waits && this.#moved) this.#waiting.add(stream);
      if (this.#stillShort) return;
    }
  }
}
