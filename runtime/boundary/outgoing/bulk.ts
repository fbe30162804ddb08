/**
 * Encodes and submits messages that fit no slot. The encoded part goes to an arena block. Large buffers of
 * the application are sent in place, and kept alive until native code reports that they are sent. Each
 * context has one such object, which its Outgoing uses.
 */
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
import { AlignedLayout, type AlignedPlan, hasGrown, planAligned } from './aligned-layout.ts';
import { blockOf } from './block-stamps.ts';
import { bufferKey, hasKey, staysInPlace } from './buffer-keys.ts';
import { BulkMessage, none } from './bulk-message.ts';
import { Sending } from './sending.ts';
import type { Submission, Target } from './submission.ts';

const nothing = new Uint8Array(0);

export class BulkMessages {
  /** Size of the message that was last refused as too large. */
  refusedBytes = 0;
  /** Size of the message that was last submitted. */
  submittedBytes = 0;
  /**
   * Number of bytes of the last arena allocation that failed. The value is 0 when the message waits for a
   * registration, because free arena memory would not help then.
   */
  shortBytes = 0;

  /** The use of arena memory for the message that is being encoded. */
  #use: number = Use.application;
  /** The session of the message that is being encoded. */
  #session = 0;
  /** Size up to which the session of `from` copies messages. */
  #copiedBytes = 0;
  #newCopiedBytes = 0;
  readonly #native: NativeContext;
  readonly #scratch: Uint8Array;
  readonly #textWords: Int32Array;
  /**
   * The message that occupies the scratch buffer until the message has been submitted, because one of its
   * getters may make a call itself.
   */
  #inScratch: BulkMessage | undefined;
  /** Null while this writer encodes a message, because a getter of that message may make a call. */
  #writer: Writer | null = new Writer();
  /** Null while a message is being laid out, for the same reason. */
  #layout: AlignedLayout | null = new AlignedLayout();
  /**
   * Messages by token until their SENT event. The application's buffers must not be collected while the
   * fabric may read them.
   */
  readonly #sending = new Sending<BulkMessage>();
  /** Buffers that are registered in the registration cache and must not be collected. */
  readonly #registered = new Map<number, ArrayBuffer>();
  /** Messages whose buffers may have been registered. They are kept until the result is known. */
  readonly #unsettled: BulkMessage[] = [];

  constructor(native: NativeContext) {
    this.#native = native;
    this.#scratch = new Uint8Array(native.scratch);
    this.#textWords = new Int32Array(native.scratch);
  }

  /**
   * Encodes a message for `target` with at most `gatherEntriesMax` gather entries. Returns the message ready
   * for submission, or a negated Reason. When the result is a Reason, no memory stays allocated. Errors of
   * the message's encoder are passed on.
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
    // The message has more large values than its gather list may hold, so all of it is copied into one entry.
    this.discard(bulk);
    return this.#encode(type, message, maxBytes, Number.POSITIVE_INFINITY, alignBytes);
  }

  /** Encodes with one gather entry and without gaps, for a message that turns out to fit a slot. */
  encodePlain<Init>(type: MessageType<unknown, Init>, message: Init, maxBytes: number): BulkMessage | number {
    return this.#encode(type, message, maxBytes, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }

  /**
   * Keeps references to the buffers that native code has registered, after a message has been submitted or
   * refused. Native code may have registered the buffers or copied them, or the call may be over.
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
   * Returns the number of messages that are being sent, and the keys of the buffers that are kept because
   * they are registered. Tests use it.
   */
  get kept(): { readonly sending: number; readonly registered: readonly number[] } {
    return { sending: this.#sending.size, registered: [...this.#registered.keys()] };
  }

  /** Returns whether a pending SENT event will bring memory back. */
  get sending(): boolean {
    return this.#sending.size !== 0;
  }

  /** Releases the memory of a message that has not been submitted. */
  discard(bulk: BulkMessage): void {
    this.#leaveScratch(bulk);
    for (const block of bulk.blocks) this.#native.discardBlock(block);
  }

  /** Handles the SENT event of `token`. */
  sent(token: number): void {
    const bulk = this.#sending.take(token);
    if (bulk === undefined) return;
    for (const block of bulk.blocks) this.#native.releaseBlock(block);
  }

  /**
   * Registers a buffer before the first call with it. Returns '' on success, or the reason why the buffer was
   * refused.
   */
  register(buffer: ArrayBuffer): string {
    const key = bufferKey(buffer);
    const why = this.#native.registerBuffer(key, buffer);
    if (why === '') this.#registered.set(key, buffer);
    return why;
  }

  /**
   * Handles the eviction of this buffer's registration. The buffer is no longer kept, unless a call has
   * registered it again in the meantime.
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
        // The gaps between many small values would make the message longer than the peer must accept.
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
          throw new CodecError(type.typeName, 'it became larger while it was being encoded');
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
   * Returns memory for the encoded part of the message: the scratch buffer when it is free and long enough,
   * otherwise a block. Returns undefined when the arena has no memory.
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

  /**
   * Builds the gather list of the message that has just been encoded. Returns false when there is no memory.
   */
  #collect(bulk: BulkMessage, writer: Writer, memory: Uint8Array, end: number): boolean {
    let from = 0;
    bulk.makeLists(0);
    for (let i = 0; i < writer.outOfLine; ++i) {
      const at = writer.outOfLineAt[i]!;
      if (at > from) this.#add(bulk, memory.subarray(from, at), 0);
      if (!this.#addValue(bulk, writer.outOfLineValue[i]!)) return false;
      from = at;
    }
    if (end > from) this.#add(bulk, memory.subarray(from, end), 0);
    return true;
  }

  /**
   * Does the same as `#collect`, for the aligned layout. It places copied values at their offsets in the
   * memory, and moves the bytes behind them. Returns false when there is no memory.
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
   * Submits the message. submitBulk in native.ts describes the parameters and the result. A submitted message
   * is kept until `sent(token)`.
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
    // Native code either copies the scratch buffer now or throws.
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
    // When the arena has no room for a copy, the values are sent in place, which needs no arena memory.
    if (result === -Reason.noMemory && bulk.leaveInPlace()) result = send(bulk.keys);
    if (result >= 0) {
      // This must come first: the peer may read these buffers until they are sent, even after an error.
      this.#sending.add(result, bulk);
      if (words !== none) bulk.blocks = none;
      else if (bulk.keys.includes(copiedMemory)) bulk.forgetGatherEntries();
      this.submittedBytes = bulk.bytes;
    }
    try {
      this.#keepRegistered(bulk);
    } catch (error) {
      // The application's stack is exhausted, so no function can be called. The message has been submitted
      // nevertheless.
      if (!(error instanceof RangeError)) throw error;
      this.#unsettled[this.#unsettled.length] = bulk;
    }
    if (result === -Reason.registering) {
      // The message waits like a message that lacks memory, although its values are sent in place.
      this.shortBytes = 0;
      return -Reason.noMemory;
    }
    if (result === -Reason.noMemory) this.shortBytes = this.#native.control[Ctl.shortBytes]! >>> 0;
    return result;
  }

  /**
   * Adds a value to be sent in place, or copies the value when that is not possible. Returns false when there
   * is no memory for the copy.
   */
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

  /** Returns the key of a buffer that holds a value of a message of this size. */
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
