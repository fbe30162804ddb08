/**
 * Encodes a message that fits no slot into a long slot, which native code sends in segments. Such messages
 * are short enough to be copied rather than exposed to the peer. Each context has one such object, which its
 * Outgoing uses.
 */
import { Writer } from '../../codec/memory/writer.ts';
import type { MessageType } from '../../codec/types.ts';
import { type NativeContext, SubOp } from '../../native/native.ts';

export class LongSlots {
  /** Length of the message that `encode` has written. */
  messageBytes = 0;

  readonly #native: NativeContext;
  readonly #memory: Uint8Array;
  /** Number of the first long slot. */
  readonly #first: number;
  /** Offset of the first long slot's payload in the memory. */
  readonly #start: number;
  /**
   * Null while a message is being encoded with it, because a getter of that message may make a call itself.
   */
  #writer: Writer | null = new Writer();

  constructor(native: NativeContext, memory: Uint8Array) {
    this.#native = native;
    this.#memory = memory;
    this.#first = native.freeSlots.length;
    this.#start = this.#first * native.slotStride + native.slotPayloadOffset;
  }

  /**
   * Encodes `metadata` and the message, together at most `maxBytes`, into a long slot, and returns the slot's
   * number. Returns -1 when the message is longer, when it has values that must be out of line, or when no
   * long slot is free. Errors of the message's encoder are passed on.
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
      // The upper bound of the length is checked first, because encoding a message only to find that it is
      // too long would cost as much as encoding a message that fits.
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
