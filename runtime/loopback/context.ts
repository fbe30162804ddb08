/**
 * An implementation of the native boundary (native.ts) in TypeScript, for channels within one process when
 * the addon cannot be loaded. The submissions of one end become events of the other end, in a later
 * event-loop iteration. The code that encodes messages into slots and blocks, and decodes them, is the same
 * as with the addon. No data leaves the process, so memory is never registered or exposed, and credits have
 * no effect. boundary/contexts.ts creates it and uses it on its JS thread.
 */
import { flushEvery, gatherEntriesMax, sessionIndexMask, slotHeadBytes } from '../limits.ts';
import {
  Ctl,
  EvKind,
  GatherEntry,
  type NativeContext,
  type NativeOptions,
  type SessionInfo,
  type SessionOptions,
  Slots,
  type Stats,
  Sub,
  type VerbsCapabilities,
} from '../native/native.ts';
import { Blocks } from './blocks.ts';
import { EventQueue, type QueueOwner } from './event-queue.ts';
import { eventOf, type LoopbackEvent, type Place } from './events.ts';
import { type MessageHost, Messages } from './messages.ts';
import { SendSlots } from './send-slots.ts';
import { LoopbackSession, type SessionHost } from './session.ts';
import { SessionTable } from './session-table.ts';

/**
 * Maximum number of submissions before a flush. It is larger than `flushEvery`, after which a flush is due.
 */
const submissionsMax = 4 * flushEvery;
const scratchBytes = 16 * 1024;

/** No memory is registered, pinned or exposed. */
const capabilities: VerbsCapabilities = {
  maxInline: 0,
  maxSge: gatherEntriesMax,
  maxSgeRead: gatherEntriesMax,
  maxQpWr: 0,
  maxSrqWr: 0,
  maxRdAtomic: 0,
  maxMsgBytes: 0xffff_ffff,
  maxWriteBytes: 0,
  segmentedBytes: 0,
  windows: true,
  immediate: false,
  onDemand: false,
  dmabuf: false,
  pinsMemory: false,
  anyMemory: true,
  copiesLate: false,
  copiedRequestBytes: 0,
  peersKeepAccess: false,
  readsLandInStaging: false,
  notes: [],
};

export class LoopbackContext implements NativeContext, SessionHost, MessageHost, QueueOwner {
  readonly control = new Int32Array(Ctl.words);
  readonly submissions = new Int32Array(submissionsMax * Sub.words);
  readonly sessionSlots = new Int32Array((sessionIndexMask + 1) * Slots.words);
  readonly gatherEntries = new Int32Array(gatherEntriesMax * GatherEntry.words);
  readonly scratch = new ArrayBuffer(scratchBytes);
  readonly events: Int32Array;
  readonly clock: Float64Array;
  readonly freeSlots: Int32Array;
  readonly sendSlab: ArrayBuffer;
  /** Short messages. A receiver reads a message in the memory into which the sender has encoded it. */
  readonly shortMessages: ArrayBuffer;
  readonly reassembledMessages = new ArrayBuffer(0);
  readonly slotStride: number;
  readonly slotPayloadOffset = slotHeadBytes;
  readonly longSlotStride = 0;
  readonly arenaBytes: number;
  readonly peersKeepAccess = false;
  readonly submissionsMax = submissionsMax;
  readonly capabilities = capabilities;
  readonly path = '';
  readonly slots: SendSlots;
  readonly blocks = new Blocks();
  readonly sessions = new SessionTable();

  readonly #queue: EventQueue;
  readonly #messages: Messages;

  constructor({ slotBytes, sendSlots, arenaBytes }: NativeOptions) {
    this.slots = new SendSlots(this.control, sendSlots, slotBytes);
    this.freeSlots = this.slots.free;
    this.sendSlab = this.slots.slab;
    this.shortMessages = this.slots.slab;
    this.slotStride = this.slots.stride;
    this.arenaBytes = arenaBytes;
    this.#queue = new EventQueue(this.control, this.slots, this);
    this.events = this.#queue.words;
    this.clock = this.#queue.clock;
    this.#messages = new Messages(this);
  }

  // --- sessions

  createSession(options: SessionOptions): number {
    const { number } = this.sessions.add((number) => new LoopbackSession(number, options, this));
    this.control[Ctl.sessions] = this.sessions.count;
    return number;
  }

  sessionAddress(session: number): Uint8Array {
    return new Uint8Array(Uint32Array.of(session).buffer);
  }

  connectSession(session: number, peerAddress: Uint8Array): string {
    const own = this.sessions.find(session);
    const number =
      peerAddress.byteLength === 4 ? new Uint32Array(Uint8Array.from(peerAddress).buffer)[0]! : -1;
    const peer = this.sessions.find(number);
    if (own?.state !== 'connecting') return 'this end of the session is closed';
    if (peer?.state !== 'connecting' || peer.options.role === own.options.role)
      return 'the other end of the session is not in this process, or is closed';
    own.connect(peer);
    return '';
  }

  closeSession(session: number, reason: string): void {
    this.sessions.find(session)?.close(reason);
  }

  sessionError(session: number): string {
    return this.sessions.find(session)?.error ?? '';
  }

  sessionInfo(session: number): SessionInfo {
    const known = this.sessions.find(session);
    return {
      device: 'loopback',
      port: 0,
      state: known?.state ?? 'down',
      endedThere: known?.endedThere ?? false,
      callsInFlight: known?.callsInFlight ?? 0,
      sendCredits: known?.options.inflightMax ?? 0,
      security: 'window',
    };
  }

  sessionPath(): undefined {
    return undefined;
  }

  sessionTrace(): undefined {
    return undefined;
  }

  // --- messages

  flush(): void {
    this.#messages.flush();
  }

  submitBulk(
    op: number,
    session: number,
    call: number,
    method: number,
    slot: number,
    metadataBytes: number,
    timeoutUs: number,
    gatherEntries: readonly Uint8Array[] | number,
    keys: readonly number[] | number,
    replyBuffer: number,
    _use: number,
    flags: number,
  ): number {
    const submitted = { op, call, method, timeoutUs, slot, metadataBytes };
    return this.#messages.submitBulk(session, submitted, gatherEntries, keys, replyBuffer, flags);
  }

  cancel(session: number, call: number, reason: number): number {
    this.sessions.find(session)?.cancel(call, reason);
    return 0;
  }

  /** Does nothing, because messages never wait at their sender. */
  want(): void {}

  deferHandler(session: number, call: number, deferred: boolean): boolean {
    return this.sessions.find(session)?.deferHandler(call, deferred) ?? false;
  }

  segmentedBytes(): number {
    return 0;
  }

  takeLongSlot(): number {
    return -1;
  }

  releaseLongSlot(): void {}

  receiveWindow(): ArrayBuffer {
    return this.shortMessages;
  }

  // --- events

  onEvents(callback: (count: number) => void): void {
    this.#queue.callback = callback;
  }

  emit(event: LoopbackEvent): void {
    this.#queue.emit(event);
  }

  drop({ slot, block }: Place): void {
    this.slots.release(slot);
    if (block !== 0) this.blocks.release(block);
  }

  onDelivery(event: LoopbackEvent): boolean {
    const session = this.sessions.find(event.session);
    if (event.kind === EvKind.request) session?.onRequest(event.call);
    if (event.kind === EvKind.settled) session?.onAnswer(event);
    return event.kind !== EvKind.cancelled || session?.onCancelled(event) === true;
  }

  onHandled({ kind, session }: LoopbackEvent): void {
    if (kind !== EvKind.sessionDown) return;
    this.sessions.delete(session);
    this.control[Ctl.sessions] = this.sessions.count;
  }

  onBatch(): void {
    this.flush();
    if (this.control[Ctl.wantSlots] === 0 || this.control[Ctl.freeSlots] === 0) return;
    this.control[Ctl.wantSlots] = 0;
    this.emit(eventOf(EvKind.slotsFree, 0));
  }

  // --- memory

  refusal(): string {
    return '';
  }

  /** Allocates a block for the application. */
  allocBlock(bytes: number): number {
    return this.blocks.leasedBytes + bytes > this.arenaBytes ? 0 : this.blocks.alloc(bytes);
  }

  /** Allocates a block for a message. No block is larger than the arena. */
  allocBuffer(bytes: number): ArrayBuffer | undefined {
    return bytes > this.arenaBytes ? undefined : this.blocks.memoryOf(this.blocks.alloc(bytes));
  }

  blockBuffer(block: number): ArrayBuffer {
    return this.blocks.lend(block);
  }

  releaseBlock(block: number): void {
    this.blocks.release(block);
  }

  discardBlock(block: number): void {
    this.blocks.release(block);
  }

  takeBlock(block: number): void {
    this.blocks.take(block);
  }

  blockOf(buffer: ArrayBuffer): number {
    return this.blocks.numberOf(buffer);
  }

  /** Reports at once that the buffer is not kept, because no memory is registered. */
  registerBuffer(key: number): string {
    this.emit(eventOf(EvKind.evicted, 0, { call: key | 0, method: Math.floor(key / 2 ** 32) }));
    return '';
  }

  holdsBuffer(): boolean {
    return false;
  }

  expectResponse(): void {}

  // --- the rest

  stats(): Stats {
    return {
      ...this.#messages.stats,
      retries: this.control[Ctl.retries]!,
      arenaBytes: this.blocks.leasedBytes,
      arenaLeasedBytes: this.blocks.leasedBytes,
      arenaLeasedBlocks: this.blocks.count,
      sendSlotsFree: this.control[Ctl.freeSlots]!,
      sessions: this.sessions.count,
      turns: this.#queue.batches,
      batches: this.#queue.batches,
    };
  }

  nameSession(): void {}

  nameMethod(): void {}

  stepSim(): boolean {
    return false;
  }

  leaveDevice(): void {}

  close(): void {
    this.#queue.close();
  }
}
