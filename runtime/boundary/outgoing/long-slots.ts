/**
 * Messages that fit no slot and are still copied rather than shown to the peer: encoded into a long slot,
 * which native code sends in segments. One per context, used by its Outgoing.
 */
import { Writer } from '../../codec/memory/writer.ts';
import type { MessageType } from '../../codec/types.ts';
import { type NativeContext, SubOp } from '../../native/native.ts';

export class LongSlots {
  /** What `encode` has written. */
  messageBytes = 0;

  readonly #native: NativeContext;
  readonly #memory: Uint8Array;
  /** Number of the first. */
  readonly #first: number;
  /** Its payload's place in the memory. */
  readonly #start: number;
  /** Null while a message is encoded with it: a getter of that may make a call itself. */
  #writer: Writer | null = new Writer();

  constructor(native: NativeContext, memory: Uint8Array) {
    this.#native = native;
    this.#memory = memory;
    this.#first = native.freeSlots.length;
    this.#start = this.#first * native.slotStride + native.slotPayloadOffset;
  }

  /**
   * The slot that has `metadata` and the message now, together `maxBytes` at most. -1: the message is longer,
   * has values that belong apart, or there is no such slot for it now. What the message's encoder throws
   * comes out.
   */
  encode<Init>(
    { op, session, call, maxBytes }: { op: number; session: number; call: number; maxBytes: number },
    type: MessageType<unknown, Init>,
    message: Init,
    metadata: Uint8Array,
  ): number {
    const writer = this.#writer ?? new Writer();
    this.#writer = null;
    let slot = -1;
    let done = false;
    try {
      writer.reset(this.#memory);
      // Nothing is encoded in vain: a message that is far too long would cost as much as one that fits.
      if (type.bound(message, writer) > maxBytes - metadata.byteLength || writer.planned !== 0) return -1;
      slot =
        op === SubOp.response ? this.#native.takeLongSlot(session, call) : this.#native.takeLongSlot(session);
      if (slot === -1) return -1;
      const from = this.#start + (slot - this.#first) * this.#native.longSlotStride;
      this.#memory.set(metadata, from);
      const at = from + metadata.byteLength;
      this.messageBytes = type.encodeTo(message, writer, at, from + maxBytes) - at;
      done = !writer.full && writer.planned === 0;
      return done ? slot : -1;
    } finally {
      this.#writer = writer;
      if (slot !== -1 && !done) this.#native.releaseLongSlot(slot);
    }
  }
}
