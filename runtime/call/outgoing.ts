/**
 * The submission path: encodes a message into a free send slot and stages eight words for native code, or, when it does not fit,
 * into an arena block with the application's large buffers left where they are. One per context, on its JS thread.
 */
import { isSharedArrayBuffer } from 'node:util/types';
import { Sink } from '../codec/sink.ts';
import type { MessageType } from '../codec/types.ts';
import { flushEvery, gatherBytes, piecesMax } from '../limits.ts';
import { Ctl, type NativeContext, Reason, Sub } from '../native.ts';
import { bufferKey } from './buffer-keys.ts';
import { closeTurn } from './deadlines.ts';

/** What the submission path must know of a session. */
export interface Target {
  readonly session: number;
  /** Metadata and message together that both our send slots and the peer's receive slots hold. */
  readonly eagerBytes: number;
  /** Largest message that the peer accepts. */
  readonly maxMessageBytes: number;
}

/** Returned by `submit` when every send slot is in use: wait for `slotsFree`. Other negative results are a Reason, negated. */
export const noSlot = -100;

interface Held {
  readonly blocks: readonly number[];
  /** Keeps the application's buffers from being collected while the fabric may read them. */
  readonly pieces: readonly Uint8Array[];
}

const nothing = new Uint8Array(0);
const text = new TextEncoder();

export class Outgoing {
  /** Size of the message that was last refused as too large. */
  refusedBytes = 0;

  readonly #native: NativeContext;
  readonly #control: Int32Array;
  readonly #submissions: Int32Array;
  readonly #freeSlots: Int32Array;
  readonly #slotStride: number;
  readonly #slotPayloadOffset: number;
  readonly #memory: Uint8Array;
  readonly #slab: Sink = new Sink();
  readonly #bulk: Sink = new Sink();
  readonly #held = new Map<number, Held>();
  /** Buffers that the registration cache keeps registered must stay where they are. */
  readonly #registered = new Map<number, ArrayBuffer>();
  #flushScheduled = false;
  readonly #flushNow = (): void => {
    this.#flushScheduled = false;
    closeTurn();
    this.flush();
  };

  constructor(native: NativeContext) {
    this.#native = native;
    this.#control = native.control;
    this.#submissions = native.submissions;
    this.#freeSlots = native.freeSlots;
    this.#slotStride = native.slotStride;
    this.#slotPayloadOffset = native.slotPayloadOffset;
    this.#memory = new Uint8Array(native.sendSlab);
    this.#slab.reset(this.#memory);
  }

  get heldCount(): number {
    return this.#held.size;
  }

  flush(): void {
    if (this.#control[Ctl.staged] !== 0) this.#native.flush();
  }

  /**
   * Sends `message`. 0: staged; above 0: bulk, the token of its SENT event; `noSlot`; otherwise a Reason, negated. What the message's
   * encoder throws comes out, and nothing has then been sent. `sink`: arena block for the response, 0 none.
   */
  submit<Init>(
    op: number,
    target: Target,
    call: number,
    method: number,
    timeoutUs: number,
    type: MessageType<unknown, Init>,
    message: Init,
    metadata: Uint8Array | undefined,
    sink: number,
  ): number {
    const control = this.#control;
    if (control[Ctl.freeSlots] === 0 && !this.#reclaim()) return noSlot;
    const slab = this.#slab;
    slab.reset(this.#memory);
    const metadataBytes = metadata === undefined ? 0 : metadata.byteLength;
    if (sink !== 0 || type.bound(message, slab) + metadataBytes > target.eagerBytes) {
      return this.#submitBulk(op, target, call, method, timeoutUs, type, message, metadata ?? nothing, sink);
    }
    const top = control[Ctl.freeSlots]! - 1;
    const slot = this.#freeSlots[top]!;
    let at = slot * this.#slotStride + this.#slotPayloadOffset;
    if (metadata !== undefined) {
      this.#memory.set(metadata, at);
      at += metadataBytes;
    }
    // The slot is taken only after the encoder has come back: should it throw, there is nothing to undo.
    const messageBytes = type.encodeTo(message, slab, at) - at;
    if (messageBytes > target.maxMessageBytes) return this.#refuse(messageBytes);
    control[Ctl.freeSlots] = top;
    this.#stage(op, target.session, call, method, slot, metadataBytes, messageBytes, timeoutUs);
    return 0;
  }

  /** Sends a text (of an error) in place of a message; what does not fit `textBytesMax` is cut off at a character. */
  submitText(
    op: number,
    target: Target,
    call: number,
    method: number,
    message: string,
    textBytesMax: number,
    metadata: Uint8Array | undefined,
  ): number {
    const control = this.#control;
    if (control[Ctl.freeSlots] === 0 && !this.#reclaim()) return noSlot;
    const slot = this.#popSlot();
    const metadataBytes = this.#putMetadata(slot, metadata ?? nothing);
    const at = slot * this.#slotStride + this.#slotPayloadOffset + metadataBytes;
    const room = Math.min(textBytesMax, target.eagerBytes - metadataBytes);
    const { written } = text.encodeInto(message, this.#memory.subarray(at, at + Math.max(0, room)));
    this.#stage(op, target.session, call, method, slot, metadataBytes, written, 0);
    return 0;
  }

  /** The SENT event of `token`. */
  sent(token: number): void {
    const held = this.#held.get(token);
    if (held === undefined) return;
    this.#held.delete(token);
    for (const block of held.blocks) this.#native.releaseBlock(block);
  }

  /** Registers a buffer before its first call. Empty string or why not. */
  register(buffer: ArrayBuffer): string {
    const key = bufferKey(buffer);
    const why = this.#native.registerBuffer(key, buffer);
    if (why === '') this.#registered.set(key, buffer);
    return why;
  }

  /** The registration of this buffer is gone: it need no longer be kept. */
  evicted(key: number): void {
    this.#registered.delete(key);
  }

  #reclaim(): boolean {
    this.flush();
    return this.#control[Ctl.freeSlots] !== 0;
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
    this.refusedBytes = bytes;
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
    if (staged + 1 >= flushEvery) {
      this.#native.flush();
    } else if (!this.#flushScheduled && control[Ctl.inCallback] === 0) {
      this.#flushScheduled = true;
      queueMicrotask(this.#flushNow);
    }
  }

  #submitBulk<Init>(
    op: number,
    target: Target,
    call: number,
    method: number,
    timeoutUs: number,
    type: MessageType<unknown, Init>,
    message: Init,
    metadata: Uint8Array,
    sink: number,
  ): number {
    const native = this.#native;
    const blocks: number[] = [];
    let kept = false;
    try {
      let pieces = this.#encodePieces(type, message, target, gatherBytes, blocks);
      // The copy in one piece is the way out for a message with more large values than a descriptor list holds.
      if (typeof pieces !== 'number' && pieces.length > piecesMax) {
        pieces = this.#encodePieces(type, message, target, Number.POSITIVE_INFINITY, blocks);
      }
      if (typeof pieces === 'number') return pieces;
      const only = pieces.length === 1 ? pieces[0]! : nothing;
      if (sink === 0 && pieces.length <= 1 && metadata.byteLength + only.byteLength <= target.eagerBytes) {
        // The bound was too careful: the message fits a slot after all.
        const slot = this.#popSlot();
        const metadataBytes = this.#putMetadata(slot, metadata);
        this.#memory.set(only, slot * this.#slotStride + this.#slotPayloadOffset + metadataBytes);
        this.#stage(op, target.session, call, method, slot, metadataBytes, only.byteLength, timeoutUs);
        return 0;
      }
      const fresh: number[] = [];
      const keys = pieces.map((piece) => this.#pieceKey(piece, fresh));
      const slot = metadata.byteLength > 0 ? this.#popSlot() : -1;
      const metadataBytes = slot === -1 ? 0 : this.#putMetadata(slot, metadata);
      const token = native.submitBulk(
        op,
        target.session,
        call,
        method,
        slot,
        metadataBytes,
        timeoutUs,
        pieces,
        keys,
        sink,
      );
      if (token < 0) {
        if (slot !== -1) this.#pushSlot(slot);
        for (const key of fresh) this.#drop(key);
        return token;
      }
      this.#held.set(token, { blocks, pieces });
      kept = true;
      return token;
    } finally {
      this.#bulk.reset(nothing);
      if (!kept) for (const block of blocks) native.releaseBlock(block);
    }
  }

  /** The message as pieces that in order are its encoding, or a Reason, negated. Blocks that it allocates are added to `blocks`. */
  #encodePieces<Init>(
    type: MessageType<unknown, Init>,
    message: Init,
    target: Target,
    gatherFrom: number,
    blocks: number[],
  ): Uint8Array[] | number {
    const bulk = this.#bulk;
    bulk.gatherBytes = gatherFrom;
    bulk.reset(nothing);
    const room = type.bound(message, bulk);
    if (bulk.gathered > target.maxMessageBytes) return this.#refuse(bulk.gathered);
    const memory = this.#alloc(room, blocks);
    if (memory === undefined) return -Reason.noMemory;
    bulk.reset(memory);
    const end = type.encodeTo(message, bulk, 0);
    const total = end + bulk.held;
    if (total > target.maxMessageBytes) return this.#refuse(total);
    const pieces: Uint8Array[] = [];
    let from = 0;
    for (let i = 0; i < bulk.holes; ++i) {
      const at = bulk.holeAt[i]!;
      if (at > from) pieces.push(memory.subarray(from, at));
      const value = this.#exposable(bulk.holeValue[i]!, blocks);
      if (value === undefined) return -Reason.noMemory;
      pieces.push(value);
      from = at;
    }
    if (end > from) pieces.push(memory.subarray(from, end));
    return pieces;
  }

  #alloc(bytes: number, blocks: number[]): Uint8Array | undefined {
    if (bytes === 0) return nothing;
    const block = this.#native.allocBlock(bytes);
    if (block === 0) return undefined;
    blocks.push(block);
    return new Uint8Array(this.#native.blockBuffer(block));
  }

  /** Memory shared between threads has no identity to register it by: it is copied. */
  #exposable(value: Uint8Array, blocks: number[]): Uint8Array | undefined {
    if (!isSharedArrayBuffer(value.buffer)) return value;
    const memory = this.#alloc(value.byteLength, blocks);
    memory?.set(value);
    return memory?.subarray(0, value.byteLength);
  }

  /** 0 for arena memory. Keys of buffers that were not registered yet are added to `fresh`. */
  #pieceKey(piece: Uint8Array, fresh: number[]): number {
    const buffer = piece.buffer as ArrayBuffer;
    if (this.#native.blockOf(buffer) !== 0) return 0;
    const key = bufferKey(buffer);
    if (!this.#registered.has(key)) {
      this.#registered.set(key, buffer);
      fresh.push(key);
    }
    return key;
  }

  #drop(key: number): void {
    this.#native.dropBuffer(key);
    this.#registered.delete(key);
  }
}
