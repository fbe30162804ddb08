/**
 * The submission path: encodes a message into a free send slot and stages eight words for native code, or
 * submits it as a bulk message (bulk.ts) when it does not fit. Each context has one such object, on its JS
 * thread.
 */
import { Writer } from '../../codec/memory/writer.ts';
import type { MessageType } from '../../codec/types.ts';
import {
  flushEvery,
  gatherEntriesMax,
  gatherEntryBytes,
  reservedSlots,
  sessionIndexMask,
  slotShare,
} from '../../limits.ts';
import { Ctl, type NativeContext, Reason, Slots, Sub, SubOp, Use } from '../../native/native.ts';
import { closeTurn } from '../time/deadlines.ts';
import { BulkMessages } from './bulk.ts';
import { LongSlots } from './long-slots.ts';
import type { Submission } from './submission.ts';

/**
 * `submit` returns this value when every send slot is in use; the caller then waits for `slotsFree`. Other
 * negative results are negated values of Reason.
 */
export const noSlot = -100;

/**
 * After this number of consecutive messages of a type that did not fit a slot, the next messages of that type
 * are not tried in a slot. Types with varying sizes do not reach this number.
 */
const overflowsMin = 4;

const nothing = new Uint8Array(0);
const text = new TextEncoder();

export class Outgoing {
  readonly bulk: BulkMessages;
  /** Length of metadata and message of the last submission. */
  submittedBytes = 0;

  readonly #native: NativeContext;
  readonly #control: Int32Array;
  readonly #submissions: Int32Array;
  readonly #freeSlots: Int32Array;
  readonly #sessionSlots: Int32Array;
  /** While more slots than this are free, no session can exceed its share. */
  readonly #scarceSlots: number;
  readonly #slotStride: number;
  readonly #slotPayloadOffset: number;
  readonly #memory: Uint8Array;
  readonly #slab: Writer = new Writer();
  readonly #long: LongSlots;
  /** True while a message is being encoded into a slot. */
  #encoding = false;
  /**
   * Type of the last message that did not fit a slot, and the number of consecutive messages of that type
   * that did not fit.
   */
  #overflowType: object | undefined;
  #overflows = 0;
  #flushScheduled = false;
  readonly #flushNow = (): void => {
    this.#flushScheduled = false;
    closeTurn();
    this.flush();
  };

  constructor(native: NativeContext) {
    this.bulk = new BulkMessages(native);
    this.#native = native;
    this.#control = native.control;
    this.#submissions = native.submissions;
    this.#freeSlots = native.freeSlots;
    this.#sessionSlots = native.sessionSlots;
    this.#scarceSlots = Math.floor(native.freeSlots.length / (1 + slotShare));
    this.#slotStride = native.slotStride;
    this.#slotPayloadOffset = native.slotPayloadOffset;
    this.#memory = new Uint8Array(native.sendSlab);
    this.#slab.reset(this.#memory);
    this.#long = new LongSlots(native, this.#memory);
  }

  flush(): void {
    if (this.#control[Ctl.staged] !== 0) this.#native.flush();
  }

  /**
   * Sends `message` as `submission` says. Returns 0 when the message is staged, the token (> 0) of its SENT
   * event when it is a bulk message, and `noSlot` or a negated Reason when it is refused. For a session that
   * is gone, the Reason is sessionLost. Errors of the message's encoder are passed on, and nothing has been
   * sent then.
   */
  submit<Init>(submission: Submission, type: MessageType<unknown, Init>, message: Init): number {
    // All fields are read now, because a getter of the message may make a call itself, which reuses this
    // submission.
    const { op, target, call, method, timeoutUs, metadata, replyBuffer, replyBufferOnly, use } = submission;
    if (metadata !== undefined) submission.metadata = undefined;
    if (target.gone === true) return -Reason.sessionLost;
    const control = this.#control;
    if (!this.#flushScheduled && control[Ctl.inCallback] === 0) this.#schedule();
    if (control[Ctl.freeSlots]! <= this.#scarceSlots && !this.#mayTake(target.session)) return noSlot;
    const metadataBytes = metadata === undefined ? 0 : metadata.byteLength;
    if (replyBuffer !== 0 || metadataBytes > target.eagerBytes) {
      return this.#submitBulk(
        { op, target, call, method, timeoutUs, metadata, replyBuffer, replyBufferOnly, use },
        type,
        message,
      );
    }
    if (type === this.#overflowType && this.#overflows >= overflowsMin) {
      const all = { op, target, call, method, timeoutUs, metadata, replyBuffer, replyBufferOnly, use };
      return this.#submitLong(all, type, message) ? 0 : this.#submitBulk(all, type, message);
    }
    // A getter of the message may make a call itself, which must use neither this slot nor this writer.
    const slab = this.#encoding ? new Writer() : this.#slab;
    const nested = this.#encoding;
    slab.reset(this.#memory);
    const slot = this.#popSlot();
    const from = slot * this.#slotStride + this.#slotPayloadOffset;
    const at = from + metadataBytes;
    let messageBytes = -1;
    this.#encoding = true;
    try {
      messageBytes = type.encodeTo(message, slab, at, from + target.eagerBytes) - at;
    } finally {
      this.#encoding = nested;
      if (messageBytes < 0 || slab.full || slab.planned !== 0 || messageBytes > target.messageMaxBytes)
        this.#pushSlot(slot);
    }
    // A message with a field that is annotated as out of line is sent as bulk although it might fit.
    if (slab.full || slab.planned !== 0) {
      const all = { op, target, call, method, timeoutUs, metadata, replyBuffer, replyBufferOnly, use };
      if (slab.planned === 0) this.#overflown(type);
      if (slab.planned === 0 && this.#submitLong(all, type, message)) return 0;
      return this.#submitBulk(all, type, message);
    }
    if (messageBytes > target.messageMaxBytes) return this.#refuse(messageBytes);
    if (type === this.#overflowType) this.#overflows = 0;
    if (metadata !== undefined) this.#memory.set(metadata, from);
    this.#stage(op, target.session, call, method, slot, metadataBytes, messageBytes, timeoutUs);
    return 0;
  }

  /**
   * Sends a text (of an error) in place of a message. The text is cut off at a character so that it has at
   * most `textBytesMax` bytes.
   */
  submitText(submission: Submission, message: string, textBytesMax: number): number {
    const { op, target, call, method, metadata } = submission;
    submission.metadata = undefined;
    if (target.gone === true) return -Reason.sessionLost;
    const control = this.#control;
    if (!this.#flushScheduled && control[Ctl.inCallback] === 0) this.#schedule();
    if (control[Ctl.freeSlots]! <= this.#scarceSlots && !this.#mayTake(target.session)) return noSlot;
    const slot = this.#popSlot();
    // When text and metadata do not fit together, the metadata is dropped, because the text matters more.
    const fits = metadata !== undefined && metadata.byteLength + textBytesMax <= target.eagerBytes;
    const metadataBytes = this.#putMetadata(slot, fits ? metadata : nothing);
    const at = slot * this.#slotStride + this.#slotPayloadOffset + metadataBytes;
    const room = Math.min(textBytesMax, target.eagerBytes - metadataBytes);
    const { written } = text.encodeInto(message, this.#memory.subarray(at, at + room));
    this.#stage(op, target.session, call, method, slot, metadataBytes, written, 0);
    return 0;
  }

  /**
   * Returns whether the session may take a slot while slots are scarce. A session whose frames cannot be sent
   * leaves some slots to the other sessions (native/session/limits.h).
   */
  #mayTake(session: number): boolean {
    this.flush();
    const free = this.#control[Ctl.freeSlots]!;
    const at = (session & sessionIndexMask) * Slots.words;
    const held = this.#sessionSlots[at + Slots.held]!;
    const reserved = Math.floor(this.#freeSlots.length / reservedSlots);
    const own = Math.max(1, Math.floor(reserved / Math.max(1, this.#control[Ctl.sessions]!)));
    if (free > reserved ? held <= slotShare * free : free > 0 && held < own) return true;
    this.#sessionSlots[at + Slots.wanted] = 1;
    return false;
  }

  /**
   * Counts a message that fits no slot. Finding out that a message with many fields does not fit costs as
   * much as encoding it. Therefore, after a few such messages, the next messages of the type are not tried in
   * a slot.
   */
  #overflown(type: object): void {
    this.#overflows = type === this.#overflowType ? this.#overflows + 1 : 1;
    this.#overflowType = type;
  }

  /**
   * Schedules the flush. This must be called before anything is staged, because it throws when the
   * application's stack is exhausted. A frame whose submission has thrown must not be sent, because its call
   * slot is given to another call.
   */
  #schedule(): void {
    queueMicrotask(this.#flushNow);
    this.#flushScheduled = true;
  }

  #popSlot(): number {
    const top = this.#control[Ctl.freeSlots]! - 1;
    this.#control[Ctl.freeSlots] = top;
    return this.#freeSlots[top]!;
  }

  #pushSlot(slot: number): void {
    const top = this.#control[Ctl.freeSlots]!;
    this.#freeSlots[top] = slot;
    this.#control[Ctl.freeSlots] = top + 1;
  }

  #putMetadata(slot: number, metadata: Uint8Array): number {
    if (metadata.byteLength > 0)
      this.#memory.set(metadata, slot * this.#slotStride + this.#slotPayloadOffset);
    return metadata.byteLength;
  }

  #refuse(bytes: number): number {
    this.bulk.refusedBytes = bytes;
    return -Reason.tooLarge;
  }

  #stage(
    op: number,
    session: number,
    call: number,
    method: number,
    slot: number,
    metadataBytes: number,
    messageBytes: number,
    timeoutUs: number,
  ): void {
    const control = this.#control;
    const words = this.#submissions;
    const staged = control[Ctl.staged]!;
    const at = staged * Sub.words;
    words[at + Sub.op] = op;
    words[at + Sub.session] = session;
    words[at + Sub.call] = call;
    words[at + Sub.method] = method;
    words[at + Sub.slot] = slot;
    words[at + Sub.metadataBytes] = metadataBytes;
    words[at + Sub.messageBytes] = messageBytes;
    words[at + Sub.timeoutUs] = timeoutUs;
    control[Ctl.staged] = staged + 1;
    this.submittedBytes = metadataBytes + messageBytes;
    if (staged + 1 < flushEvery) return;
    try {
      this.#native.flush();
    } catch (error) {
      // The stack is exhausted. The staged frames are sent at the end of the event-loop iteration.
      if (!(error instanceof RangeError)) throw error;
    }
  }

  /**
   * Submits a message in segments when the peer accepts segments and they cost less than bulk. Returns false
   * when the message has not been submitted.
   */
  #submitLong<Init>(
    submission: Readonly<Submission>,
    type: MessageType<unknown, Init>,
    message: Init,
  ): boolean {
    const { op, target, call, method, timeoutUs } = submission;
    const metadata = submission.metadata ?? nothing;
    const maxBytes = Math.min(target.segmentedBytes ?? 0, metadata.byteLength + target.messageMaxBytes);
    if (maxBytes <= target.eagerBytes) return false;
    const slot = this.#long.encode({ op, session: target.session, call, maxBytes }, type, message, metadata);
    if (slot === -1) return false;
    const { messageBytes } = this.#long;
    if (type === this.#overflowType && metadata.byteLength + messageBytes <= target.eagerBytes)
      this.#overflows = 0;
    this.#stage(op, target.session, call, method, slot, metadata.byteLength, messageBytes, timeoutUs);
    return true;
  }

  #submitBulk<Init>(
    submission: Readonly<Submission>,
    type: MessageType<unknown, Init>,
    message: Init,
  ): number {
    const { op, target, call, method, timeoutUs, replyBuffer } = submission;
    const metadata = submission.metadata ?? nothing;
    const use = submission.use || (op === SubOp.response ? Use.response : Use.request);
    const spareBytes = target.eagerBytes - metadata.byteLength;
    if (spareBytes < 0) {
      throw new RangeError(
        `metadata of ${metadata.byteLength} bytes, but this connection's slots hold ${target.eagerBytes} (slotBytes)`,
      );
    }
    // The gather list shares the slot with the metadata; one gather entry always fits.
    const gatherEntryCount = Math.min(gatherEntriesMax, 1 + Math.floor(spareBytes / gatherEntryBytes));
    let bulk = this.bulk.encode(target, type, message, gatherEntryCount, use);
    if (
      typeof bulk !== 'number' &&
      bulk.aligned &&
      replyBuffer === 0 &&
      bulk.count === 1 &&
      bulk.bytes <= spareBytes
    ) {
      this.bulk.discard(bulk);
      bulk = this.bulk.encodePlain(type, message, target.messageMaxBytes);
    }
    if (typeof bulk === 'number') return bulk;
    // Messages of this type have become small enough for a slot again.
    if (type === this.#overflowType && bulk.bytes <= spareBytes) this.#overflows = 0;
    // The slots are checked again, because getters of the message may have made calls that have taken slots.
    if (this.#control[Ctl.freeSlots]! <= this.#scarceSlots && !this.#mayTake(target.session)) {
      this.bulk.discard(bulk);
      return noSlot;
    }
    const { gatherEntries, count } = bulk;
    // Parts of a stream must be sent in the order of their submission. Flush first, because the opening of
    // the stream may still be staged.
    if (op === SubOp.part) this.flush();
    const only = gatherEntries.length === 1 ? gatherEntries[0]! : nothing;
    if (
      replyBuffer === 0 &&
      count <= 1 &&
      gatherEntries.length === count &&
      metadata.byteLength + only.byteLength <= target.eagerBytes
    ) {
      // The estimate of the size was too high: the message fits a slot after all.
      const slot = this.#popSlot();
      const metadataBytes = this.#putMetadata(slot, metadata);
      this.#memory.set(only, slot * this.#slotStride + this.#slotPayloadOffset + metadataBytes);
      this.#stage(op, target.session, call, method, slot, metadataBytes, only.byteLength, timeoutUs);
      this.bulk.discard(bulk);
      return 0;
    }
    const slot = metadata.byteLength > 0 ? this.#popSlot() : -1;
    const metadataBytes = slot === -1 ? 0 : this.#putMetadata(slot, metadata);
    // This must be the last step that can throw, because a submitted message cannot be taken back.
    const token = this.bulk.submit(bulk, submission, slot, metadataBytes, use);
    this.submittedBytes = metadataBytes + bulk.bytes;
    if (token < 0) {
      if (slot !== -1) this.#pushSlot(slot);
      this.bulk.discard(bulk);
    }
    return token;
  }
}
