/**
 * The submission path: encodes a message into a free send slot and stages eight words for native code, or,
 * when it does not fit, hands it over as a bulk message (bulk.ts). One per context, on its JS thread.
 */
import { Writer } from '../../codec/memory/writer.ts';
import type { MessageType } from '../../codec/types.ts';
import {
  flushEvery,
  gatherEntriesMax,
  gatherEntryBytes,
  reservedSlots,
  sessionPlaces,
  slotShare,
} from '../../limits.ts';
import { Ctl, type NativeContext, Reason, Slots, Sub, SubOp, Use } from '../../native/native.ts';
import { closeTurn } from '../time/deadlines.ts';
import { BulkMessages } from './bulk.ts';
import { LongSlots } from './long-slots.ts';
import type { Submission } from './submission.ts';

/**
 * Returned by `submit` when every send slot is in use: wait for `slotsFree`. Other negative results are a
 * Reason, negated.
 */
export const noSlot = -100;

/**
 * Messages of a type that fit no slot, one after the other, until the next ones are not tried there. Where
 * sizes vary, all are.
 */
const overflowsMin = 4;

const nothing = new Uint8Array(0);
const text = new TextEncoder();

export class Outgoing {
  readonly bulk: BulkMessages;
  /** Of what was submitted last: metadata and message. */
  submittedBytes = 0;

  readonly #native: NativeContext;
  readonly #control: Int32Array;
  readonly #submissions: Int32Array;
  readonly #freeSlots: Int32Array;
  readonly #sessionSlots: Int32Array;
  /** With more free ones no session can be beyond its share. */
  readonly #scarceSlots: number;
  readonly #slotStride: number;
  readonly #slotPayloadOffset: number;
  readonly #memory: Uint8Array;
  readonly #slab: Writer = new Writer();
  readonly #long: LongSlots;
  /** A message is being encoded into a slot. */
  #encoding = false;
  /** Of the last message that did not fit a slot, and how many of that type have not, one after the other. */
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
   * Sends `message` as `submission` says. 0: staged; above 0: bulk, the token of its SENT event; `noSlot`;
   * otherwise a Reason, negated. What the message's encoder throws comes out, and nothing has then been sent.
   * For a session that is gone it is Reason.sessionLost.
   */
  submit<Init>(submission: Submission, type: MessageType<unknown, Init>, message: Init): number {
    // All of it now: a getter of the message may make a call itself, with the same submission.
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
    // A getter of the message may make a call itself, or do anything else: it must find neither this slot nor
    // this writer.
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
    // What a field's annotation wants apart goes as bulk although it might fit.
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
   * Sends a text (of an error) in place of a message; what does not fit `textBytesMax` is cut off at a
   * character.
   */
  submitText(submission: Submission, message: string, textBytesMax: number): number {
    const { op, target, call, method, metadata } = submission;
    submission.metadata = undefined;
    if (target.gone === true) return -Reason.sessionLost;
    const control = this.#control;
    if (!this.#flushScheduled && control[Ctl.inCallback] === 0) this.#schedule();
    if (control[Ctl.freeSlots]! <= this.#scarceSlots && !this.#mayTake(target.session)) return noSlot;
    const slot = this.#popSlot();
    // The text matters more than the metadata.
    const fits = metadata !== undefined && metadata.byteLength + textBytesMax <= target.eagerBytes;
    const metadataBytes = this.#putMetadata(slot, fits ? metadata : nothing);
    const at = slot * this.#slotStride + this.#slotPayloadOffset + metadataBytes;
    const room = Math.min(textBytesMax, target.eagerBytes - metadataBytes);
    const { written } = text.encodeInto(message, this.#memory.subarray(at, at + room));
    this.#stage(op, target.session, call, method, slot, metadataBytes, written, 0);
    return 0;
  }

  /**
   * When slots are scarce: a session whose frames cannot go leaves some to the others
   * (native/session/limits.h).
   */
  #mayTake(session: number): boolean {
    this.flush();
    const free = this.#control[Ctl.freeSlots]!;
    const at = (session & sessionPlaces) * Slots.words;
    const held = this.#sessionSlots[at + Slots.held]!;
    const reserved = Math.floor(this.#freeSlots.length / reservedSlots);
    const own = Math.max(1, Math.floor(reserved / Math.max(1, this.#control[Ctl.sessions]!)));
    if (free > reserved ? held <= slotShare * free : free > 0 && held < own) return true;
    this.#sessionSlots[at + Slots.wanted] = 1;
    return false;
  }

  /**
   * To find out that a message of many parts fits no slot costs as much as to encode it, so the next ones of
   * the type are not tried there.
   */
  #overflown(type: object): void {
    this.#overflows = type === this.#overflowType ? this.#overflows + 1 : 1;
    this.#overflowType = type;
  }

  /**
   * Before anything is staged, since it throws where the stack of the application has come to its end: a
   * frame whose submission has thrown must not go, as its call slot is given to another call.
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
      // No stack is left for it. What is staged goes with the turn.
      if (!(error instanceof RangeError)) throw error;
    }
  }

  /** In segments, when the peer takes them and they cost less than bulk. False: it has not been submitted. */
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
    // The list of gather entries shares the slot with the metadata; one gather entry always fits.
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
    // They have become small again.
    if (type === this.#overflowType && bulk.bytes <= spareBytes) this.#overflows = 0;
    // Getters of the message may have made calls that have taken them.
    if (this.#control[Ctl.freeSlots]! <= this.#scarceSlots && !this.#mayTake(target.session)) {
      this.bulk.discard(bulk);
      return noSlot;
    }
    const { gatherEntries, count } = bulk;
    // Parts of a stream go in the order in which they were submitted: the first must not come before the
    // stream's opening, which may be staged.
    if (op === SubOp.part) this.flush();
    const only = gatherEntries.length === 1 ? gatherEntries[0]! : nothing;
    if (
      replyBuffer === 0 &&
      count <= 1 &&
      gatherEntries.length === count &&
      metadata.byteLength + only.byteLength <= target.eagerBytes
    ) {
      // The bound was too careful: the message fits a slot after all.
      const slot = this.#popSlot();
      const metadataBytes = this.#putMetadata(slot, metadata);
      this.#memory.set(only, slot * this.#slotStride + this.#slotPayloadOffset + metadataBytes);
      this.#stage(op, target.session, call, method, slot, metadataBytes, only.byteLength, timeoutUs);
      this.bulk.discard(bulk);
      return 0;
    }
    const slot = metadata.byteLength > 0 ? this.#popSlot() : -1;
    const metadataBytes = slot === -1 ? 0 : this.#putMetadata(slot, metadata);
    // Nothing that could throw may stand behind it: what has been submitted is under way.
    const token = this.bulk.submit(bulk, submission, slot, metadataBytes, use);
    this.submittedBytes = metadataBytes + bulk.bytes;
    if (token < 0) {
      if (slot !== -1) this.#pushSlot(slot);
      this.bulk.discard(bulk);
    }
    return token;
  }
}
