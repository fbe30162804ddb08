/**
 * Declares the native boundary: the functions of the addon (native/binding), and the memory that JS and
 * native code share. All other code of the runtime reaches native code through this file. Each JS thread has
 * its own `NativeContext`s.
 *
 * On the hot path, JS writes *submissions* into a shared Int32Array. Native code consumes all of them at
 * `flush()`, or when the JS callback that it has entered returns. Native code writes *events* into another
 * shared Int32Array and enters JS once per batch. Both sides allocate no objects. Both run on the same
 * thread, so plain loads and stores suffice. words.ts describes the words of submissions and events.
 */

import { clockMs } from '../clock.ts';
import { addonPath, namedAddon } from './addon-path.ts';
import { collectYoung } from './collector.ts';
import { contextNeeds } from './js-runtime.ts';
import type { NativeOptions, SessionInfo, SessionOptions, SessionPath } from './options.ts';
import { glibcVersion, whyNoAddon, whyNotNamed } from './remedy.ts';
import type { NativeSockets } from './sockets.ts';
import type { Stats } from './stats.ts';
import type { NativeOpenOptions, NativeVerbsDevice } from './verbs-device.ts';
import type { VerbsDetails, VerbsWatch } from './verbs-inspection.ts';
import type { VerbsCapabilities, VerbsReport } from './verbs-report.ts';

export type * from './options.ts';
export type { FileLock } from './sockets.ts';
export { addStats, noStats, type Stats } from './stats.ts';
export type { VerbsDetails, VerbsEvent, VerbsPortDetails, VerbsWatch } from './verbs-inspection.ts';
export type { VerbsCapabilities, VerbsDevice, VerbsGid, VerbsPort, VerbsReport } from './verbs-report.ts';
export {
  Ctl,
  copiedMemory,
  Ev,
  EvKind,
  firstWindowBits,
  GatherEntry,
  leasedMemory,
  notRun,
  PendingRelease,
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
   * The segments (gather entries) of a bulk submission, used when all of them lie in the arena or the encode
   * scratch buffer. The array has room for the maximum number of segments in a submission.
   */
  readonly gatherEntries: Int32Array;
  /**
   * The encode scratch buffer. It holds the encoded bytes of a large message without its large values, when
   * these bytes are few. Native code copies them at submission.
   */
  readonly scratch: ArrayBuffer;
  /** Size of the arena in bytes, which is also the largest size of a block. */
  readonly arenaBytes: number;
  /** [0] is the time of the current event-loop iteration on the clock of JS (clock.ts). */
  readonly clock: Float64Array;
  /**
   * All send slots. Slot i starts at i * slotStride; its payload of up to slotBytes begins slotPayloadOffset
   * later.
   */
  readonly sendSlab: ArrayBuffer;
  readonly slotStride: number;
  readonly slotPayloadOffset: number;
  /** Stride of the long slots, which lie behind the slots of `freeSlots` and continue their numbers. */
  readonly longSlotStride: number;
  /** Messages that came in segments, for events with region -2. */
  readonly reassembledMessages: ArrayBuffer;
  /**
   * Short messages of all sessions, for events with a receive slot number of at least `shortMessageSlots`.
   */
  readonly shortMessages: ArrayBuffer;
  /**
   * Whether a peer on this fabric keeps access to the memory of large messages. Such a peer can write, at any
   * time, to memory that it was once allowed to write.
   */
  readonly peersKeepAccess: boolean;
  /** Maximum number of submissions that may be staged before a flush. */
  readonly submissionsMax: number;
  /** Capabilities of the device. */
  readonly capabilities: VerbsCapabilities;
  /**
   * Names the device, the port and the local addresses, for verbs. Two contexts with the same path reach the
   * same peers.
   */
  readonly path: string;

  /**
   * Posts all staged submissions and wakes the pump. It is cheap, because nothing is allocated. Call it after
   * about 16 staged submissions, and once per event-loop iteration.
   */
  flush(): void;

  /**
   * Creates a session: a queue pair in INIT with its receives posted. Throws an error with the name of the
   * exceeded limit when the session cannot be created. The returned number is opaque: it has 31 bits, and its
   * low 14 bits are unique among the live sessions. It is not reused while any code may still hold it.
   */
  createSession(options: SessionOptions): number;
  sessionAddress(session: number): Uint8Array;
  /**
   * Connects the session to the peer's address blob. Returns '' when the session is connected or connecting.
   * A sessionUp or sessionDown event then reports the result, and calls may be submitted meanwhile. Otherwise
   * returns the reason why the session cannot connect. Such a session is useless and must be closed. For tcp,
   * `host` (a numeric address) and `port` are the address of the passive side's server. For shm-fd, `host` is
   * the path of that server's unix socket. `words` are the secret words of this side and of the peer, with 16
   * bytes each. On fabrics whose connection setup exchanges a message, this side sends its own word, and
   * accepts only a peer that sends the peer's word.
   */
  connectSession(
    session: number,
    peerAddress: Uint8Array,
    host?: string,
    port?: number,
    words?: Uint8Array,
  ): string;
  /**
   * Returns the window of a session's receives that contains `slot` (`receiveWindow`), for receive slots
   * other than those of short messages. Offsets in events are counted from the start of the window. V8 counts
   * the bytes of the window as external memory, so this should be called only when the window is needed. The
   * buffer is detached after the session is closed.
   */
  receiveWindow(session: number, slot: number): ArrayBuffer;
  /**
   * Ends the session. The queue pair goes to ERR, every call gets its FAILED event, and then SESSION_DOWN
   * follows. The session's number may be reused after that event.
   */
  closeSession(session: number, reason: string): void;
  sessionError(session: number): string;
  sessionInfo(session: number): SessionInfo;
  /**
   * Returns the last events of a session that has failed and is going down, in the format of
   * runtime/counters/events.ts. Returns undefined for a session that was closed with no call in flight.
   */
  sessionTrace(session: number): { rows: Uint8Array; client: boolean; peer: string } | undefined;
  /**
   * Asks the kernel how far the bytes of the session's connection have come, with two system calls. Returns
   * undefined for a session that is closed, and on fabrics whose connections are not sockets.
   */
  sessionPath(session: number): SessionPath | undefined;

  /**
   * Returns how many bytes of metadata and message this session may stage in a long slot, or 0 when it may
   * use no long slot.
   */
  segmentedBytes(session: number): number;
  /**
   * Takes a long slot for a request, or for the response to the handle `call`. The slot must be staged like
   * other slots, or returned with `releaseLongSlot`. Returns -1 when no long slot is free. Also returns -1
   * when a message that does not fit a slot must be submitted by submitBulk.
   */
  takeLongSlot(session: number, call?: number): number;
  releaseLongSlot(slot: number): void;

  /**
   * Submits a request or response that does not fit a slot, or a request that carries a buffer for its
   * response.
   *
   * `gatherEntries` are the segments (gather entries) that make up the message, in order. Each lies in the
   * encode scratch buffer, in an arena block or in an ArrayBuffer. `keys[i]` is the identity of that
   * ArrayBuffer: 0 for the arena, `leasedMemory` for arena memory that the application has leased, and
   * `copiedMemory` when the entire message is to be copied to the arena now. When `gatherEntries` is a
   * number, the context's `gatherEntries` hold this number of segments. `keys` is then 0, or a block whose
   * reference JS gives up with the submission. `slot` holds the metadata, at most slotBytes - 512 bytes, and
   * is -1 without metadata. `replyBuffer` is the arena block that the response is to be received in, or 0;
   * the caller keeps its reference. `use` is the use of the arena block (Use) when the segments have to be
   * copied into one block. `flags` are submitAligned and submitReplyBufferOnly.
   *
   * Returns a token > 0. A SENT event carries the token when the gather entries are no longer in use, which
   * is before or at the end of the call. For a call that is pending release, the SENT event comes with the
   * RELEASED event at the latest. Returns a negated Reason when the submission is refused. In that case JS
   * keeps the slot, the call and the references, and no event follows.
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
   * Cancels a call of a client (reason: Reason.cancelled or Reason.deadline). The call's FAILED or SETTLED
   * event follows. It comes within the next batch if the call exposed no memory; otherwise it comes when the
   * peer has released the memory, or after kSettleGraceNs (10 ms). In the last case, the call slot and the
   * memory of the call are pending release until RELEASED. Where the fabric can revoke the memory, only the
   * slot is pending release. Returns how many bytes of this side's arena the call was waiting for to receive
   * its response, or 0 when it was not waiting.
   */
  cancel(session: number, call: number, reason: number): number;

  /**
   * Tells native code that the application waits for the message of a partWaits event. Does nothing when the
   * call of that event is over.
   */
  want(session: number, call: number): void;

  /**
   * For servers: says that the handler of a call has not begun yet (`deferred` is true), or begins now. When
   * a call is cancelled before its handler has begun, its client learns this. Returns false when the call is
   * over, for example because it was cancelled. Its handler must then not begin.
   */
  deferHandler(session: number, call: number, deferred: boolean): boolean;

  /**
   * Returns the reason why the operating system refused memory to the last call that found none, or '' when a
   * limit of this library was the cause.
   */
  refusal(): string;
  /**
   * Allocates an arena block of at least that size, with one reference. Returns 0 when the arena has no room,
   * or when the share of this use or session is used up. A block that is allocated without a session does not
   * count against a session's share.
   */
  allocBlock(bytes: number, use: number, session?: number): number;
  /** Does the same as `allocBlock`, but returns the block's memory, or undefined. */
  allocBuffer(bytes: number, use: number, session?: number): ArrayBuffer | undefined;
  /**
   * Returns the block's memory, which is the same ArrayBuffer each time while the block is alive. When the
   * ArrayBuffer is collected, the block is released.
   */
  blockBuffer(block: number): ArrayBuffer;
  /**
   * Releases a block whose ArrayBuffer the application has not seen. The next lease of the block gets the
   * same ArrayBuffer.
   */
  releaseBlock(block: number): void;
  /** Does the same as `releaseBlock` for a block that was not used, without sending a `memoryFree` event. */
  discardBlock(block: number): void;
  /** Releases a block and detaches its ArrayBuffer. From then on the application's views of it are empty. */
  takeBlock(block: number): void;
  /** Returns the block that this ArrayBuffer belongs to, or 0. */
  blockOf(buffer: ArrayBuffer): number;
  /**
   * Registers a buffer now, so that its first call does not have to register it. Returns '' on success, or
   * the reason why the registration was refused.
   */
  registerBuffer(key: number, buffer: ArrayBuffer): string;
  /**
   * Returns whether that buffer is registered. A registered buffer must be kept alive until its `evicted`
   * event.
   */
  holdsBuffer(key: number): boolean;

  /**
   * Announces the size of responses to this method word. The next request of the method then brings a reply
   * buffer of this size.
   */
  expectResponse(method: number, bytes: number): void;

  stats(): Stats;
  /**
   * Sets the names that the counters page shows for the peer of a session and for a method. `security` is the
   * position in `securityLevels`, counted from 1.
   */
  nameSession(session: number, peer: string, security: number): void;
  nameMethod(method: number, name: string): void;
  /** Sets the function that handles batches of events. The function must not throw. */
  onEvents(callback: (count: number) => void): void;
  /**
   * Carries out the next event of a stepped simulation, in the order of the seed. The results are delivered
   * in the next iteration of the event loop. Returns false when no event is left. The clock of the
   * simulation, which sessions use, has then advanced by 5 ms.
   */
  stepSim(): boolean;
  /**
   * Closes a removed device, because the system waits until it is closed. Call it after deviceGone, when the
   * last session is down. Leased blocks stay valid. From then on the only valid calls are those that release
   * blocks, and close(). After it returns, callbacks are no longer made.
   */
  leaveDevice(): void;
  /** Closes the context. After it returns, callbacks are no longer made. */
  close(): void;
}

export interface NativeModule extends NativeSockets {
  /** Opens a device of `rdma-rpc/verbs`. Throws the reason when the device cannot be opened. */
  openVerbsDevice(options: NativeOpenOptions): NativeVerbsDevice;
  /**
   * Returns the columns of verbs-device.ts as the addon was compiled with them, for the test that compares
   * them.
   */
  verbsRecords(): Record<string, Record<string, number>>;
  createContext(options: NativeOptions): NativeContext;
  /**
   * Reports the RDMA devices with their ports. It also tries to use them, which takes some milliseconds for
   * each device. Registers `neededBytes` on each device as a test. A device that refuses this cannot be used.
   * Only devices that `device` names are tried (default: all), until `enough` of them can be used (default:
   * all of them). Devices that are not tried have no capabilities in the report.
   */
  verbsDevices(neededBytes: number, device?: string, enough?: number): VerbsReport;
  /**
   * Returns all attributes of the RDMA devices, for people to read. The list is empty where libibverbs cannot
   * be loaded; verbsDevices() says why.
   */
  verbsDetails(): VerbsDetails[];
  /** Begins to receive the events of a device. Throws an Error when the device cannot be opened. */
  verbsWatch(device: string): VerbsWatch;
  /**
   * The ciphers with which sessions can be sealed, beginning with the fastest on this machine. The list is
   * empty when libcrypto is missing.
   */
  readonly ciphers: readonly string[];
  /**
   * The reason why this JS runtime cannot be used, and the remedy. It is empty when the runtime can be used.
   */
  readonly whyUnusable: string;
  /**
   * Returns the address of a buffer's memory. A double holds the address exactly, because only 48 bits are
   * used (57 with five-level paging, but aligned).
   */
  address(buffer: ArrayBuffer): number;
  /**
   * Makes the process keep up to 48 MiB of freed memory for reuse, unless its malloc is configured otherwise
   * (native/binding/freed_memory.h).
   */
  keepFreedMemory(): void;
  /**
   * Returns the time in milliseconds for which V8 must not be made to collect garbage in this thread, or 0
   * when it may collect now. All callers that force a collection share a tenth of the thread's time.
   */
  collectionWaitMs(): number;
  /** Records how long a forced collection has taken, in milliseconds. */
  collectionDone(ms: number): void;
  /**
   * Calls `fn` in the root async context, in which no AsyncLocalStorage has a store, and returns its result.
   */
  runInRoot<T>(fn: () => T): T;
  /** Returns the constants that the addon was compiled with, for the test that compares them. */
  boundary(): Record<string, Record<string, number>>;
}

let loaded: NativeModule | undefined;
let isMissing = false;

/** Loads the addon. Throws an error when no addon is found, or when this JS runtime cannot use it. */
export function loadNative(): NativeModule {
  if (loaded !== undefined) return loaded;
  const needs = contextNeeds();
  // require() is not used, because bundlers would try to resolve the path, and webpack breaks the call.
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
    openVerbsDevice: (options) => addon.openVerbsDevice({ ...needs, ...options }),
    createContext: (options) => addon.createContext({ ...needs, clock: clockMs, collectYoung, ...options }),
  };
  return loaded;
}

/**
 * Returns the addon, or undefined when it cannot be loaded, for code that also works without it. A failed
 * attempt is not repeated. Code that needs the addon calls `loadNative()`, which throws the reason when the
 * addon cannot be loaded.
 */
export function nativeIfLoads(): NativeModule | undefined {
  if (isMissing) return undefined;
  try {
    return loadNative();
  } catch {
    isMissing = true;
    return undefined;
  }
}
