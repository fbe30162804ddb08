/**
 * The one declaration of the native boundary: what the addon (native/binding) offers and how the two sides
 * share memory. Everything else in the runtime reaches native code through this file. One `NativeContext` per
 * JS thread.
 *
 * Hot path: JS writes *submissions* into a shared Int32Array and native code consumes them all at `flush()`,
 * or when the JS callback that it has entered returns. Native code writes *events* into another shared
 * Int32Array and enters JS once per batch. Neither side makes an object, and both run on the same thread, so
 * plain loads and stores do. What the words of both are is in words.ts.
 */

import { clockMs } from '../clock.ts';
import { addonPath, namedAddon } from './addon-path.ts';
import { collectYoung } from './collector.ts';
import { contextNeeds } from './js-runtime.ts';
import type { NativeOptions, SessionInfo, SessionOptions } from './options.ts';
import { glibcVersion, whyNoAddon, whyNotNamed } from './remedy.ts';
import type { NativeSockets } from './sockets.ts';
import type { Stats } from './stats.ts';
import type { VerbsCapabilities, VerbsReport } from './verbs-report.ts';

export type { NativeOptions, Polling, SessionInfo, SessionOptions, VerbsOptions } from './options.ts';
export type { FileLock } from './sockets.ts';
export { addStats, type Stats } from './stats.ts';
export type { VerbsCapabilities, VerbsDevice, VerbsGid, VerbsPort, VerbsReport } from './verbs-report.ts';
export {
  Ctl,
  copiedMemory,
  Ev,
  EvKind,
  firstWindowBits,
  GatherEntry,
  Held,
  leasedMemory,
  notRun,
  Reason,
  reassembledMessage,
  receiveSlab,
  receiveWindow,
  Slots,
  Sub,
  SubOp,
  shortMessageSlots,
  submitAligned,
  submitReplyBufferOnly,
  Use,
} from './words.ts';

export interface NativeContext {
  readonly control: Int32Array;
  readonly submissions: Int32Array;
  readonly events: Int32Array;
  readonly freeSlots: Int32Array;
  readonly sessionSlots: Int32Array;
  /**
   * The segments (gather entries) of a bulk submission, when all of them lie in the arena or the encode
   * scratch buffer. It has room for as many as one submission may have.
   */
  readonly gatherEntries: Int32Array;
  /**
   * What is encoded of a large message besides its large values, when that is short. Copied when it is
   * submitted.
   */
  readonly scratch: ArrayBuffer;
  /** No block of the arena is larger. */
  readonly arenaBytes: number;
  /** [0]: the time on the clock of JS (clock.ts) as of the current turn. */
  readonly clock: Float64Array;
  /**
   * All send slots: slot i starts at i * slotStride, its payload at + slotPayloadOffset, room for slotBytes.
   */
  readonly sendSlab: ArrayBuffer;
  readonly slotStride: number;
  readonly slotPayloadOffset: number;
  /**
   * Behind the slots of `freeSlots` there are long ones, with numbers that go on where those end, and this
   * stride.
   */
  readonly longSlotStride: number;
  /** For events with region -2: messages that came in segments. */
  readonly reassembledMessages: ArrayBuffer;
  /** For events with a receive slot from `shortMessageSlots` on, of whatever session: short messages. */
  readonly shortMessages: ArrayBuffer;
  /**
   * The peers of this fabric can write, at any time, to memory of large messages that they have once had a
   * right to.
   */
  readonly peersKeepAccess: boolean;
  /** Submissions that fit before a flush is due. */
  readonly submissionsMax: number;
  /** Of the device. */
  readonly capabilities: VerbsCapabilities;
  /**
   * verbs: device, port and addresses that it is reached by. Two contexts with the same one are for the same
   * peers.
   */
  readonly path: string;

  /**
   * Posts everything staged and wakes the pump. Cheap (no allocation): call it after about 16 staged entries,
   * and once per turn.
   */
  flush(): void;

  /**
   * A queue pair in INIT with its receives posted. Throws with the limit's name when it cannot be had. The
   * number is opaque (31 bits, its low 14 bits are unique among the sessions alive) and not given to another
   * session while anyone may still hold it.
   */
  createSession(options: SessionOptions): number;
  sessionAddress(session: number): Uint8Array;
  /**
   * Connects to the peer's address blob. Empty string: connected, or on the way, and a sessionUp or
   * sessionDown event will tell; calls may be submitted meanwhile. Otherwise why not (the session is then
   * useless: close it). tcp: `host`, in numbers, and `port` say where the passive side's server listens;
   * shm-fd: `host` is the path of its unix socket. `words`: own and peer's, 16 bytes each: in the first
   * message between the queue pairs, where there is one, this side says its own and takes nobody but who says
   * the peer's.
   */
  connectSession(
    session: number,
    peerAddress: Uint8Array,
    host?: string,
    port?: number,
    words?: Uint8Array,
  ): string;
  /**
   * The window of a session's receives that a slot is in (`receiveWindow`), for events with another receive
   * slot: their offsets count from its start. V8 counts its bytes as external memory, so it is asked for when
   * it is needed. Detached after the session is closed.
   */
  receiveWindow(session: number, slot: number): ArrayBuffer;
  /**
   * Ends the session: queue pair to ERR, every call gets its FAILED event, then SESSION_DOWN. The number is
   * free for reuse after that event.
   */
  closeSession(session: number, reason: string): void;
  sessionError(session: number): string;
  sessionInfo(session: number): SessionInfo;
  /**
   * Of a session that has failed (not: that was closed with no call under way) and is going down: its last
   * events, as runtime/counters/events.ts has them.
   */
  sessionTrace(session: number): { rows: Uint8Array; client: boolean; peer: string } | undefined;

  /** Metadata and message that may be staged together in a long slot, of this session; 0: none may. */
  segmentedBytes(session: number): number;
  /**
   * Takes a long slot for a request, or for the response to the handle `call`. It is staged as other slots
   * are, or given back by `releaseLongSlot`. Returns -1 when there is none, or when a message that does not
   * fit a slot has to go by submitBulk.
   */
  takeLongSlot(session: number, call?: number): number;
  releaseLongSlot(slot: number): void;

  /**
   * Submits a request or response that does not fit a slot, or a request that carries a buffer for its
   * answer.
   *
   * `gatherEntries` are the segments (gather entries) that make up the message, in order. Each lies in the
   * encode scratch buffer, in an arena block or in an ArrayBuffer; `keys[i]` is the identity of that
   * ArrayBuffer, 0 for the arena, `leasedMemory` for arena memory that the application has leased, and
   * `copiedMemory` when the whole message is to be copied to the arena now. When `gatherEntries` is a number,
   * the context's `gatherEntries` hold this number of segments, and `keys` is 0, or a block whose reference
   * JS gives up with the submission. `slot` holds the metadata, at most slotBytes - 512 bytes of it, and is
   * -1 without metadata. `replyBuffer` is the arena block that the response is to be received in, or 0; the
   * caller keeps its reference. `use` says for what the arena gives a block (Use) when the segments have to
   * be copied into one. `flags`: submitAligned, submitReplyBufferOnly.
   *
   * Returns a token > 0. A SENT event carries it when the segments are no longer in use: before or with the
   * end of the call, for a call that is held with its RELEASED event at the latest. Returns a negative Reason
   * when refused: then slot, call and references stay with JS, and no event follows.
   */
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
    use: number,
    flags: number,
  ): number;

  /**
   * Client: gives a call up (reason: Reason.cancelled or Reason.deadline). Its FAILED or SETTLED event
   * follows: within the next batch for a call that exposed no memory, otherwise when the peer has let go of
   * it or after kSettleGraceNs (10 ms), and then its call slot and memory are held until RELEASED (the
   * slot alone where the fabric can take the memory away from the peer). Returns
   * how many bytes of this side's arena the call was waiting for, for its response; 0: it was not.
   */
  cancel(session: number, call: number, reason: number): number;

  /**
   * The application waits for the message that a partWaits event told of. Nothing happens when its call is
   * over.
   */
  want(session: number, call: number): void;

  /** Why the system refused what the last call that found no memory wanted; empty: it was a limit of ours. */
  refusal(): string;
  /**
   * Arena block of at least that size, one reference; 0 when the budget, or the share of this use or session,
   * has no room. Without a session it counts for nobody.
   */
  allocBlock(bytes: number, use: number, session?: number): number;
  /** The same, but gives the block's memory, undefined for none. */
  allocBuffer(bytes: number, use: number, session?: number): ArrayBuffer | undefined;
  /**
   * The block's memory. The same ArrayBuffer every time while the block lives. Collected: the block is
   * released.
   */
  blockBuffer(block: number): ArrayBuffer;
  /**
   * Gives back a block whose ArrayBuffer only the runtime has seen. The next lease of the block has the same
   * ArrayBuffer.
   */
  releaseBlock(block: number): void;
  /**
   * The same for a block that nothing has come of: nobody who waits for memory is told of it (`memoryFree`).
   */
  discardBlock(block: number): void;
  /**
   * The same, and detaches the block's ArrayBuffer: views that the application has of it are empty from now
   * on.
   */
  takeBlock(block: number): void;
  /** The block that this ArrayBuffer belongs to, 0 none. */
  blockOf(buffer: ArrayBuffer): number;
  /** Registers a buffer now, so that its first call need not. Empty string or why it was refused. */
  registerBuffer(key: number, buffer: ArrayBuffer): string;
  /** Whether that buffer is registered: it must stay where it is until an `evicted` event, and only then. */
  holdsBuffer(key: number): boolean;

  /** Responses of this method word will have about so many bytes: its next request brings memory for them. */
  expectResponse(method: number, bytes: number): void;

  stats(): Stats;
  /**
   * What the counters page calls the other side of a session, and a method. `security`: place in
   * `securityLevels`, from 1.
   */
  nameSession(session: number, peer: string, security: number): void;
  nameMethod(method: number, name: string): void;
  /** Batches of events go to this function, which must not throw. */
  onEvents(callback: (count: number) => void): void;
  /**
   * A stepped simulation carries out its next event, in the order of the seed; what comes of it is delivered
   * in the next turn of the event loop. False: there is none, and its clock, by which sessions go, has moved
   * on by 5 ms.
   */
  stepSim(): boolean;
  /**
   * After deviceGone, when the last session is down: closes the device, which the system is waiting for.
   * Leased blocks stay as they are; nothing else works from then on but giving them back and close(). No
   * callback after it returns.
   */
  leaveDevice(): void;
  /** Closes everything. No callback after it returns. */
  close(): void;
}

export interface NativeModule extends NativeSockets {
  createContext(options: NativeOptions): NativeContext;
  /** `neededBytes` are registered on each meanwhile; a device that does not allow that cannot be used. */
  verbsDevices(neededBytes: number): VerbsReport;
  /** What sessions can be sealed with, the fastest here first. Empty: there is no libcrypto. */
  readonly ciphers: readonly string[];
  /** Empty, or why this JS runtime cannot be used, and what to do. */
  readonly whyUnusable: string;
  /** Where the memory of a buffer begins. A double holds it: addresses have 48 bits, or 57. */
  address(buffer: ArrayBuffer): number;
  /**
   * From now on the process keeps up to 48 MiB that it has freed, unless its malloc has been told otherwise
   * (native/binding/freed_memory.h).
   */
  keepFreedMemory(): void;
  /**
   * How long V8 is not to be made to collect in this thread: all that make it do so share a tenth of the
   * thread's time. 0: it may be.
   */
  collectionWaitMs(): number;
  /** It has been made to collect, which took so long. */
  collectionDone(ms: number): void;
  /**
   * Calls `fn` in the root async context, in which no AsyncLocalStorage has a store, and gives what it gives.
   */
  runInRoot<T>(fn: () => T): T;
  /** The constants as the addon was compiled with, for the test that compares them. */
  boundary(): Record<string, Record<string, number>>;
}

let loaded: NativeModule | undefined;

/** Loads the addon. Throws, in one sentence, when there is none or when this JS runtime cannot use it. */
export function loadNative(): NativeModule {
  if (loaded !== undefined) return loaded;
  const needs = contextNeeds();
  // Not by require(): bundlers look for that, and webpack makes nothing of it.
  const module = { exports: {} };
  const path = addonPath();
  try {
    process.dlopen(module, path);
  } catch (cause) {
    if (namedAddon() !== undefined) throw new Error(whyNotNamed(path, (cause as Error).message), { cause });
    const what = `the native addon does not load (${(cause as Error).message})`;
    throw new Error(whyNoAddon(what, { glibc: glibcVersion() }), { cause });
  }
  const addon = module.exports as NativeModule;
  if (typeof addon.whyUnusable !== 'string') {
    throw new Error(`rdma-rpc: ${path} is of another version of rdma-rpc; copy or build it again`);
  }
  if (addon.whyUnusable !== '') throw new Error(`rdma-rpc: ${addon.whyUnusable}`);
  loaded = {
    ...addon,
    createContext: (options) => addon.createContext({ ...needs, clock: clockMs, collectYoung, ...options }),
  };
  return loaded;
}
