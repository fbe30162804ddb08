/**
 * Implements a NativeContext that consists of arrays. This context keeps the contract of
 * runtime/native/native.ts, but transfers nothing. Tests inspect the submissions and choose the events, in
 * any order; `deliver` enters the runtime as native code does.
 */
import { clockMs } from '../../runtime/clock.ts';
import { gatherEntriesMax, sessionIndexMask } from '../../runtime/limits.ts';
import {
  Ctl,
  copiedMemory,
  Ev,
  EvKind,
  GatherEntry,
  leasedMemory,
  type NativeContext,
  Reason,
  type SessionInfo,
  type SessionOptions,
  Slots,
  type Stats,
  Sub,
} from '../../runtime/native/native.ts';
import type { FakeEvent, FakeOptions, Submitted } from './fake-events.ts';

const gatherEntriesIn = (words: Int32Array, count: number): Int32Array[] =>
  Array.from({ length: count }, (_, i) => words.slice(4 * i, 4 * i + 4));

const payloadOffset = 64;
const slabBytes = 1 << 20;

export class FakeNative implements NativeContext {
  readonly control = new Int32Array(Ctl.words);
  readonly submissions = new Int32Array(64 * Sub.words);
  readonly events = new Int32Array(64 * Ev.words);
  readonly freeSlots: Int32Array;
  readonly sessionSlots = new Int32Array((sessionIndexMask + 1) * Slots.words);
  readonly arenaBytes: number;
  readonly clock = new Float64Array(1);
  readonly sendSlab: ArrayBuffer;
  readonly slotStride: number;
  readonly peersKeepAccess = false;
  readonly slotPayloadOffset = payloadOffset;
  readonly longSlotStride = 0;
  readonly reassembledMessages = new ArrayBuffer(0);
  readonly shortMessages = new ArrayBuffer(0);
  readonly submissionsMax = 64;
  readonly path = 'fake';
  readonly capabilities = {} as NativeContext['capabilities'];
  /** The result of refusal(). */
  refused = '';

  readonly gatherEntries = new Int32Array(gatherEntriesMax * GatherEntry.words);
  readonly scratch = new ArrayBuffer(4096);
  /** All flushed messages, oldest first. */
  readonly submitted: Submitted[] = [];
  readonly cancels: { session: number; call: number; reason: number }[] = [];
  readonly closes: { session: number; reason: string }[] = [];
  readonly sessions = new Map<number, SessionOptions>();
  readonly blocks = new Map<number, { buffer: ArrayBuffer; references: number }>();
  readonly registered: number[] = [];
  flushes = 0;
  closed = false;
  /** Slots are freed at flush, as for inline sends. When false, they stay in use until `freeSlot`. */
  freeAtFlush = true;
  readonly heldSlots: number[] = [];
  /** The result of submitBulk when it is not 0. */
  refuseBulk = 0;
  /** The bytes that submitBulk requested from the arena when it returns noMemory. */
  shortBytes = 100_000;
  /** When true, messages with a buffer to be copied are refused for lack of memory. */
  refuseCopies = false;
  connectError = '';
  /** Sessions that were told to connect. The test delivers `sessionUp` or `sessionDown`. */
  readonly connected: number[] = [];
  sessionErrorText = 'gone';
  endedThere = false;
  clockFromPerformance = true;

  #callback: ((count: number) => void) | undefined;
  readonly #slabs = new Map<number, ArrayBuffer>();
  #nextSession = 0;
  #nextBlock = 1;
  #nextToken = 1;
  #arenaLeft: number;

  constructor({ slots = 64, slotBytes = 8192, arenaBytes = 1 << 26 }: FakeOptions = {}) {
    this.slotStride = payloadOffset + slotBytes;
    this.freeSlots = Int32Array.from({ length: slots }, (_, i) => slots - 1 - i);
    this.control[Ctl.freeSlots] = slots;
    this.sendSlab = new ArrayBuffer(slots * this.slotStride);
    this.#arenaLeft = arenaBytes;
    this.arenaBytes = arenaBytes;
    this.clock[0] = clockMs();
  }

  get freeSlotCount(): number {
    return this.control[Ctl.freeSlots]!;
  }

  flush(): void {
    ++this.flushes;
    const memory = new Uint8Array(this.sendSlab);
    const staged = this.control[Ctl.staged]!;
    this.control[Ctl.staged] = 0;
    for (let i = 0; i < staged; ++i) {
      const word = (offset: number): number => this.submissions[i * Sub.words + offset]!;
      const slot = word(Sub.slot);
      const from = slot * this.slotStride + payloadOffset;
      const middle = from + word(Sub.metadataBytes);
      this.submitted.push({
        op: word(Sub.op),
        session: word(Sub.session),
        call: word(Sub.call),
        method: word(Sub.method),
        metadata: memory.slice(from, middle),
        message: memory.slice(middle, middle + word(Sub.messageBytes)),
        timeoutUs: word(Sub.timeoutUs) >>> 0,
        bulk: false,
        replyBuffer: 0,
        gatherEntries: [],
        keys: [],
      });
      if (this.freeAtFlush) this.#push(slot);
      else this.heldSlots.push(slot);
    }
  }

  /** Frees the send slots that are in use. */
  releaseSlots(): void {
    for (const slot of this.heldSlots.splice(0)) this.#push(slot);
  }

  /** Enters the runtime with a batch of events. */
  deliver(...events: FakeEvent[]): void {
    for (const [i, event] of events.entries()) this.#write(i * Ev.words, event, i);
    if (this.clockFromPerformance) this.clock[0] = clockMs();
    this.control[Ctl.inCallback] = 1;
    this.#callback?.(events.length);
    this.control[Ctl.inCallback] = 0;
    if (this.control[Ctl.staged] !== 0) this.flush();
  }

  createSession(options: SessionOptions): number {
    const session = this.#nextSession++;
    this.sessions.set(session, options);
    return session;
  }

  sessionAddress(session: number): Uint8Array {
    return Uint8Array.of(session + 1);
  }

  connectSession(session: number): string {
    this.connected.push(session);
    return this.connectError;
  }

  /** Reports each closed session as down, once. */
  endClosed(): void {
    for (const { session, reason } of this.closes) {
      if (!this.sessions.delete(session)) continue;
      this.sessionErrorText = reason;
      this.deliver({ kind: EvKind.sessionDown, session });
    }
  }

  segmentedBytes(): number {
    return 0;
  }

  takeLongSlot(): number {
    return -1;
  }

  releaseLongSlot(): void {}

  /**
   * Returns one buffer for all receive windows of a session. The slots in events are slots of the first
   * window.
   */
  receiveWindow(session: number): ArrayBuffer {
    let slab = this.#slabs.get(session);
    if (slab === undefined) {
      slab = new ArrayBuffer(slabBytes);
      this.#slabs.set(session, slab);
    }
    return slab;
  }

  closeSession(session: number, reason: string): void {
    this.closes.push({ session, reason });
    this.sessionErrorText = reason;
  }

  sessionError(): string {
    return this.sessionErrorText;
  }

  sessionPath(): undefined {
    return undefined;
  }

  sessionTrace(): undefined {
    return undefined;
  }
  sessionInfo(): SessionInfo {
    return {
      device: 'fake',
      port: 0,
      state: 'ready',
      endedThere: this.endedThere,
      callsInFlight: 0,
      sendCredits: 0,
      security: 'window',
    };
  }

  submitBulk(
    op: number,
    session: number,
    call: number,
    method: number,
    slot: number,
    metadataBytes: number,
    timeoutUs: number,
    given: readonly Uint8Array[] | number,
    givenKeys: readonly number[] | number,
    replyBuffer: number,
  ): number {
    if (this.refuseBulk === Reason.noMemory) this.control[Ctl.shortBytes] = this.shortBytes;
    if (this.refuseBulk !== 0) return -this.refuseBulk;
    if (this.refuseCopies && typeof givenKeys !== 'number' && givenKeys.includes(copiedMemory))
      return -Reason.noMemory;
    const words = typeof given === 'number' ? gatherEntriesIn(this.gatherEntries, given) : [];
    const inBlocks = words.map(([block, at, bytes]) => {
      // The scratch buffer is copied immediately.
      if (block === 0) return new Uint8Array(this.scratch).slice(at, at! + bytes!);
      return new Uint8Array(this.blockBuffer(block!), at, bytes);
    });
    const gatherEntries = typeof given === 'number' ? inBlocks : given;
    const keys =
      typeof givenKeys === 'number' ? words.map((each) => (each[3] ? leasedMemory : 0)) : givenKeys;
    const from = slot * this.slotStride + payloadOffset;
    const metadata =
      slot === -1 ? new Uint8Array(0) : new Uint8Array(this.sendSlab).slice(from, from + metadataBytes);
    this.submitted.push({
      op,
      session,
      call,
      method,
      metadata,
      message: new Uint8Array(Buffer.concat(gatherEntries)),
      timeoutUs: timeoutUs >>> 0,
      bulk: true,
      replyBuffer,
      gatherEntries,
      keys,
    });
    if (slot !== -1) this.#push(slot);
    if (typeof givenKeys === 'number' && givenKeys !== 0) this.releaseBlock(givenKeys);
    return this.#nextToken++;
  }

  /** The bytes of memory that a cancelled call waited for. */
  awaitedBytes = 0;

  cancel(session: number, call: number, reason: number): number {
    this.cancels.push({ session, call, reason });
    return this.awaitedBytes;
  }

  want(): void {}

  deferHandler(): boolean {
    return true;
  }

  refusal(): string {
    return this.refused;
  }

  allocBlock(bytes: number, _use = 0, _session = 0): number {
    if (bytes > this.#arenaLeft) return 0;
    this.#arenaLeft -= bytes;
    const block = this.#nextBlock++;
    this.blocks.set(block, { buffer: new ArrayBuffer(bytes), references: 1 });
    return block;
  }

  allocBuffer(bytes: number): ArrayBuffer | undefined {
    return this.blocks.get(this.allocBlock(bytes))?.buffer;
  }

  blockBuffer(block: number): ArrayBuffer {
    return this.blocks.get(block)!.buffer;
  }

  readonly taken: number[] = [];

  takeBlock(block: number): void {
    this.taken.push(block);
    const known = this.blocks.get(block);
    if (known !== undefined) known.buffer = structuredClone(known.buffer, { transfer: [known.buffer] });
    this.releaseBlock(block);
  }

  discardBlock(block: number): void {
    this.releaseBlock(block);
  }

  releaseBlock(block: number): void {
    const known = this.blocks.get(block);
    if (known === undefined) throw new Error(`block ${block} released once too often`);
    if (--known.references > 0) return;
    this.#arenaLeft += known.buffer.byteLength;
    this.blocks.delete(block);
  }

  blockOf(buffer: ArrayBuffer): number {
    for (const [block, known] of this.blocks) if (known.buffer === buffer) return block;
    return 0;
  }

  registerBuffer(key: number): string {
    this.registered.push(key);
    return '';
  }

  /** The keys of submitted buffers that were not registered. */
  readonly unregistered = new Set<number>();

  holdsBuffer(key: number): boolean {
    return !this.unregistered.has(key);
  }

  expectResponse(): void {}

  nameSession(): void {}

  nameMethod(): void {}

  stats(): Stats {
    return { arenaLeasedBlocks: this.blocks.size } as Stats;
  }

  onEvents(callback: (count: number) => void): void {
    this.#callback = callback;
  }

  stepSim = (): boolean => false;
  leaveDevice(): void {}

  close(): void {
    this.closed = true;
    this.#callback = undefined;
  }

  #push(slot: number): void {
    this.freeSlots[this.control[Ctl.freeSlots]!] = slot;
    ++this.control[Ctl.freeSlots]!;
  }

  #write(at: number, event: FakeEvent, index: number): void {
    const session = event.session ?? 0;
    const metadata = event.metadata ?? new Uint8Array(0);
    const message = event.message ?? new Uint8Array(0);
    const slab = new Uint8Array(this.receiveWindow(session));
    const slot = index * 16384;
    slab.set(metadata, slot);
    const words = this.events;
    words.fill(0, at, at + Ev.words);
    words[at + Ev.kind] = event.kind;
    words[at + Ev.session] = session;
    words[at + Ev.call] = event.call ?? 0;
    words[at + Ev.method] = event.method ?? event.status ?? event.held ?? 0;
    words[at + Ev.metadataBytes] = metadata.byteLength;
    words[at + Ev.messageBytes] = message.byteLength;
    words[at + Ev.timeoutUs] = event.timeoutUs ?? event.reason ?? event.refusedBytes ?? 0;
    words[at + Ev.processed] = event.processed ?? event.part ?? 0;
    words[at + Ev.receiveSlot] = 1;
    if (event.block !== undefined) {
      const known = this.blocks.get(event.block)!;
      ++known.references;
      new Uint8Array(known.buffer).set(message);
      words[at + Ev.region] = event.block;
      words[at + Ev.aligned] = event.aligned === true ? 1 : 0;
      words[at + Ev.metadataOffset] = slot;
    } else {
      slab.set(message, slot + metadata.byteLength);
      words[at + Ev.region] = -1;
      words[at + Ev.offset] = slot;
      words[at + Ev.metadataOffset] = slot;
    }
  }
}
