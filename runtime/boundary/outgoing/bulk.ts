/**
 * Messages that fit no slot: encoded into an arena block, with the application's large buffers left where
 * they are, and kept alive until native code says that they are sent. One per context, used by its Outgoing.
 */
import { isSharedArrayBuffer } from 'node:util/types';
import { CodecError } from '../../codec/error.ts';
import { encodeMeasured } from '../../codec/measured.ts';
import { Writer } from '../../codec/memory/writer.ts';
import type { MessageType } from '../../codec/types.ts';
import { gatherBytes, leaseBytes } from '../../limits.ts';
import {
  Ctl,
  copiedMemory,
  GatherEntry,
  leasedMemory,
  type NativeContext,
  Reason,
  submitAligned,
  submitReplyBufferOnly,
  Use,
} from '../../native/native.ts';
import { AlignedLayout, type AlignedPlan, planAligned } from './aligned-layout.ts';
import { blockOf } from './block-stamps.ts';
import { bufferKey, hasKey } from './buffer-keys.ts';
import { BulkMessage, none } from './bulk-message.ts';
import { Sending } from './sending.ts';
import type { Submission, Target } from './submission.ts';

const nothing = new Uint8Array(0);

/**
 * Whether a device can be given this memory. What threads share has no identity to register it by. What can
 * be resized may lose its pages under the peer's READ, and that would end the connection, with the calls of
 * others on it.
 */
function staysInPlace(buffer: ArrayBufferLike): boolean {
  return !isSharedArrayBuffer(buffer) && (buffer as { resizable?: boolean }).resizable !== true;
}

/** By a getter that gave more now than to `bound`: what is moved to its place then would not fit. */
function hasGrown(writer: Writer, plan: AlignedPlan, textBytes: number): boolean {
  let bytes = textBytes;
  for (let i = 0; i < writer.holes; i++)
    if (writer.holeCopied[i] === true) bytes += writer.holeValue[i]!.length;
  return writer.holes > plan.values || bytes > plan.contentBytes;
}

export class BulkMessages {
  /** Size of the message that was last refused as too large. */
  refusedBytes = 0;
  /** Size of the message that was last submitted. */
  submittedBytes = 0;
  /**
   * What was last asked of the arena in vain; 0: a buffer was being registered, which no memory of the arena
   * helps.
   */
  shortBytes = 0;

  /** Of blocks for the message that is being encoded. */
  #use: number = Use.application;
  /** For which it is encoded. */
  #session = 0;
  /** Of its target: up to which size it is copied. */
  #copiedBytes = 0;
  #newCopiedBytes = 0;
  readonly #native: NativeContext;
  readonly #scratch: Uint8Array;
  readonly #textWords: Int32Array;
  /** The message that is in it, until that has been submitted: a getter of it may make a call itself. */
  #inScratch: BulkMessage | undefined;
  /** Null while a message is encoded with it: a getter of that may make a call itself. */
  #writer: Writer | null = new Writer();
  /** The same while one is laid out. */
  #layout: AlignedLayout | null = new AlignedLayout();
  /** By token, until SENT: the application's buffers must not be collected while the fabric may read them. */
  readonly #sending = new Sending<BulkMessage>();
  /** Buffers that the registration cache keeps registered, which must stay where they are. */
  readonly #registered = new Map<number, ArrayBuffer>();
  /** Messages of which that is not known: all of their buffers stay. */
  readonly #unsettled: BulkMessage[] = [];

  constructor(native: NativeContext) {
    this.#native = native;
    this.#scratch = new Uint8Array(native.scratch);
    this.#textWords = new Int32Array(native.scratch);
  }

  /**
   * The message for `target`, in `gatherEntriesMax` gather entries at most, ready to be submitted, or a
   * Reason, negated, with nothing left behind. What its encoder throws comes out.
   */
  encode<Init>(
    target: Target,
    type: MessageType<unknown, Init>,
    message: Init,
    gatherEntriesMax: number,
    use: number,
  ): BulkMessage | number {
    const { messageMaxBytes: maxBytes } = target;
    this.#use = use;
    this.#session = target.session;
    this.#copiedBytes = target.copiedBytes ?? 0;
    this.#newCopiedBytes = target.newCopiedBytes ?? 0;
    const alignBytes = target.aligned === true ? leaseBytes : Number.POSITIVE_INFINITY;
    const bulk = this.#encode(type, message, maxBytes, gatherBytes, alignBytes);
    if (typeof bulk === 'number' || bulk.count <= gatherEntriesMax) return bulk;
    // More large values than its descriptor list may hold: all of it is copied into one gather entry.
    this.discard(bulk);
    return this.#encode(type, message, maxBytes, Number.POSITIVE_INFINITY, alignBytes);
  }

  /** The same in one gather entry, without gaps: for what turns out to fit a slot. */
  encodePlain<Init>(type: MessageType<unknown, Init>, message: Init, maxBytes: number): BulkMessage | number {
    return this.#encode(type, message, maxBytes, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }

  /**
   * Submitted, or refused: native code has registered the buffers of a message or not (it may have copied
   * them, or the call may be over), and keeps them registered or not. Only those that it keeps must stay.
   */
  #keepRegistered(bulk: BulkMessage): void {
    for (let gatherEntry = 0; gatherEntry < bulk.keys.length; gatherEntry++) {
      const key = bulk.keys[gatherEntry]!;
      if (key <= 0 || this.#registered.has(key) || !this.#native.holdsBuffer(key)) continue;
      this.#registered.set(key, bulk.gatherEntries[gatherEntry]!.buffer as ArrayBuffer);
    }
  }

  #settle(): void {
    for (const bulk of this.#unsettled) this.#keepRegistered(bulk);
    this.#unsettled.length = 0;
  }

  /**
   * Messages under way, and the keys of the buffers that stay because they are registered. For tests that
   * count.
   */
  get kept(): { readonly sending: number; readonly registered: readonly number[] } {
    return { sending: this.#sending.size, registered: [...this.#registered.keys()] };
  }

  /** Whether memory will come back by itself, with a SENT event. */
  get sending(): boolean {
    return this.#sending.size !== 0;
  }

  /** Gives back what has not been submitted. */
  discard(bulk: BulkMessage): void {
    this.#leaveScratch(bulk);
    for (const block of bulk.blocks) this.#native.discardBlock(block);
  }

  /** The SENT event of `token`. */
  sent(token: number): void {
    const bulk = this.#sending.take(token);
    if (bulk === undefined) return;
    for (const block of bulk.blocks) this.#native.releaseBlock(block);
  }

  /** Registers a buffer before its first call. Empty string or why not. */
  register(buffer: ArrayBuffer): string {
    const key = bufferKey(buffer);
    const why = this.#native.registerBuffer(key, buffer);
    if (why === '') this.#registered.set(key, buffer);
    return why;
  }

  /**
   * The registration of this buffer is gone, and it need no longer be kept, unless a call has brought it back
   * since.
   */
  evicted(key: number): void {
    if (!this.#native.holdsBuffer(key)) this.#registered.delete(key);
  }

  #encode<Init>(
    type: MessageType<unknown, Init>,
    message: Init,
    maxBytes: number,
    gatherFrom: number,
    alignFrom: number,
  ): BulkMessage | number {
    const writer = this.#writer ?? new Writer();
    this.#writer = null;
    const bulk = new BulkMessage();
    let fault = -Reason.noMemory;
    try {
      writer.plan(gatherFrom, alignFrom);
      writer.reset(nothing);
      const room = type.bound(message, writer);
      fault = this.#fault(writer.gathered, maxBytes);
      const planned = alignFrom === Number.POSITIVE_INFINITY ? 0 : writer.planned;
      const plan = planAligned(planned, room + writer.gathered, room, writer.copied, maxBytes);
      if (plan === undefined && planned !== 0) {
        this.#writer = writer;
        // So many small values, each with a gap, would take more than the peer has to take.
        return this.#encode(type, message, maxBytes, gatherFrom, Number.POSITIVE_INFINITY);
      }
      const memory = fault === 0 ? this.#memoryFor(bulk, plan, room) : undefined;
      if (memory !== undefined) {
        writer.reset(memory);
        const start = plan?.tableBytes ?? 0;
        const end = encodeMeasured(type, message, writer, start);
        bulk.bytes = end - start + writer.held;
        fault = this.#fault(bulk.bytes, maxBytes);
        if (fault === 0 && plan !== undefined && hasGrown(writer, plan, end - start))
          throw new CodecError(type.typeName, 'it grew while it was being encoded');
        if (
          fault === 0 &&
          (plan === undefined
            ? this.#collect(bulk, writer, memory, end)
            : this.#collectAligned(bulk, writer, plan, memory, end))
        )
          return bulk;
      }
      this.discard(bulk);
      return fault === 0 ? -Reason.noMemory : fault;
    } catch (error) {
      this.discard(bulk);
      throw error;
    } finally {
      writer.reset(nothing);
      this.#writer = writer;
    }
  }

  /**
   * For all of the message that is encoded: the scratch buffer, when that is free and long enough, or a
   * block.
   */
  #memoryFor(bulk: BulkMessage, plan: AlignedPlan | undefined, room: number): Uint8Array | undefined {
    if (plan === undefined) return this.#alloc(room, bulk);
    if (plan.roomBytes > this.#scratch.length || this.#inScratch !== undefined)
      return this.#alloc(plan.roomBytes, bulk);
    this.#inScratch = bulk;
    return this.#scratch;
  }

  #leaveScratch(bulk: BulkMessage): void {
    if (this.#inScratch === bulk) this.#inScratch = undefined;
  }

  #fault(bytes: number, maxBytes: number): number {
    if (bytes <= maxBytes) return 0;
    this.refusedBytes = bytes;
    return -Reason.tooLarge;
  }

  /** Lists the gather entries of what has just been encoded. False: no memory. */
  #collect(bulk: BulkMessage, writer: Writer, memory: Uint8Array, end: number): boolean {
    let from = 0;
    bulk.makeLists(0);
    for (let i = 0; i < writer.holes; ++i) {
      const at = writer.holeAt[i]!;
      if (at > from) this.#add(bulk, memory.subarray(from, at), 0);
      if (!this.#addValue(bulk, writer.holeValue[i]!)) return false;
      from = at;
    }
    if (end > from) this.#add(bulk, memory.subarray(from, end), 0);
    return true;
  }

  /**
   * The same for an aligned message: values that are copied go into the memory, each to its place, and what
   * lies behind them moves on. False: no memory.
   */
  #collectAligned(
    bulk: BulkMessage,
    writer: Writer,
    plan: AlignedPlan,
    memory: Uint8Array,
    end: number,
  ): boolean {
    const layout = this.#layout ?? new AlignedLayout();
    this.#layout = null;
    bulk.aligned = true;
    try {
      layout.fill(writer, plan, memory, end, memory === this.#scratch ? this.#textWords : undefined);
      if (bulk.placeAll(this.#native, layout)) return true;
      bulk.makeLists(layout.gatherEntries);
      for (let i = 0; i < layout.stretches; i++) {
        const from = layout.from[i]!;
        const to = layout.to[i]!;
        const value = layout.value[i];
        if (to > from) this.#add(bulk, memory.subarray(from, to), 0);
        if (value !== undefined && !this.#addValue(bulk, value)) return false;
      }
      return true;
    } finally {
      layout.empty();
      this.#layout = layout;
    }
  }

  /**
   * Submits it: native.ts says how, and what comes of it. What has been submitted is kept until
   * `sent(token)`.
   */
  submit(
    bulk: BulkMessage,
    { op, target: { session }, call, method, timeoutUs, replyBuffer, replyBufferOnly }: Readonly<Submission>,
    slot: number,
    metadataBytes: number,
    use: number,
  ): number {
    const { words } = bulk;
    let gatherEntries: Uint8Array[] | number = bulk.gatherEntries;
    let keys: number[] | number = bulk.keys;
    if (words !== none) {
      const shared = this.#native.gatherEntries;
      for (let i = 0; i < words.length; i++) shared[i] = words[i]!;
      gatherEntries = words.length / GatherEntry.words;
      keys = bulk.blocks[0] ?? 0;
    }
    const flags = (bulk.aligned ? submitAligned : 0) | (replyBufferOnly ? submitReplyBufferOnly : 0);
    if (this.#unsettled.length !== 0) this.#settle();
    // Native code copies it now, or throws.
    this.#leaveScratch(bulk);
    const send = (keys: readonly number[] | number): number =>
      this.#native.submitBulk(
        op,
        session,
        call,
        method,
        slot,
        metadataBytes,
        timeoutUs,
        gatherEntries,
        keys,
        replyBuffer,
        use,
        flags,
      );
    let result = send(keys);
    // Where the arena has no room for a copy its values go from where they are, and need none.
    if (result === -Reason.noMemory && bulk.leaveInPlace()) result = send(bulk.keys);
    if (result >= 0) {
      // First of all: whatever fails from here on, the peer may read these buffers until they are sent.
      this.#sending.add(result, bulk);
      if (words !== none) bulk.blocks = none;
      else if (bulk.keys.includes(copiedMemory)) bulk.forgetGatherEntries();
      this.submittedBytes = bulk.bytes;
    }
    try {
      this.#keepRegistered(bulk);
    } catch (error) {
      // The stack of the application has come to its end, where nothing can be called. The message is under
      // way all the same.
      if (!(error instanceof RangeError)) throw error;
      this.#unsettled[this.#unsettled.length] = bulk;
    }
    if (result === -Reason.registering) {
      // It waits as others do for memory, of which large values need none where they go from where they are.
      this.shortBytes = 0;
      return -Reason.noMemory;
    }
    if (result === -Reason.noMemory) this.shortBytes = this.#native.control[Ctl.shortBytes]! >>> 0;
    return result;
  }

  /** From where it is, or copied where that cannot be. False: no memory. */
  #addValue(bulk: BulkMessage, value: Uint8Array): boolean {
    if (staysInPlace(value.buffer)) {
      this.#add(bulk, value, this.#keyOf(value.buffer as ArrayBuffer, bulk.bytes));
      return true;
    }
    const copy = this.#alloc(value.byteLength, bulk);
    if (copy === undefined) return false;
    copy.set(value);
    this.#add(bulk, copy.subarray(0, value.byteLength), 0);
    return true;
  }

  #add(bulk: BulkMessage, gatherEntry: Uint8Array, key: number): void {
    const at = bulk.added++;
    bulk.gatherEntries[at] = gatherEntry;
    bulk.keys[at] = key;
  }

  /** Of a buffer with a value of a message of so many bytes. */
  #keyOf(buffer: ArrayBuffer, bytes: number): number {
    if (this.#native.blockOf(buffer) !== 0) return leasedMemory;
    if (bytes <= this.#copiedBytes) return copiedMemory;
    const isNew = bytes <= this.#newCopiedBytes && !hasKey(buffer);
    const key = bufferKey(buffer);
    return isNew ? copiedMemory : key;
  }

  #alloc(bytes: number, bulk: BulkMessage): Uint8Array | undefined {
    if (bytes === 0) return nothing;
    const buffer = this.#native.allocBuffer(bytes, this.#use, this.#session);
    if (buffer === undefined) {
      this.shortBytes = bytes;
      return undefined;
    }
    const block = blockOf(this.#native, buffer);
    if (bulk.blocks === none) bulk.blocks = [block];
    else bulk.blocks.push(block);
    return new Uint8Array(buffer);
  }
}
