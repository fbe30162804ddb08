/**
 * The one declaration of the native boundary: what the addon (native/binding) offers and how the two sides share
 * memory. Everything else in the runtime reaches native code through this file. One `NativeContext` per JS thread.
 *
 * Hot path: JS writes *submissions* into a shared Int32Array and native code consumes them all at `flush()`, or when
 * the JS callback that it has entered returns. Native code writes *events* into another shared Int32Array and enters JS once per
 * batch. Neither side makes an object, and both run on the same thread, so plain loads and stores do.
 *
 * native/session/boundary.h mirrors the constants of this file; test/native/boundary.test.ts compares the two.
 */

import { addonPath, namedAddon } from './addon-path.ts';
import { contextNeeds, type RuntimeNeeds } from './js-runtime.ts';
import { glibcVersion, whyNoAddon, whyNotNamed } from './native-remedy.ts';
import type { NativeSockets } from './native-sockets.ts';
import type { Stats } from './native-stats.ts';
import type { VerbsCapabilities, VerbsReport } from './verbs-report.ts';

export type { FileLock } from './native-sockets.ts';
export type { Stats } from './native-stats.ts';
export type { VerbsCapabilities, VerbsDevice, VerbsGid, VerbsPort, VerbsReport } from './verbs-report.ts';

/** Int32 words of one submission. A slot holds `slotPayloadOffset` spare bytes, then `metadata | message`. */
export const Sub = {
  /** SubOp */
  op: 0,
  session: 1,
  /** REQUEST, PART: call slot, chosen from the session's `callSlots`, unused now. RESPONSE: the `call` word of the request's event. */
  call: 2,
  /** REQUEST, PART: method id. RESPONSE: status code, plus `notRun` when the handler did not run (the caller then learns processed: no). */
  method: 3,
  /** Send slot number, taken from the free stack. Native code puts it back when the fabric is done with it. */
  slot: 4,
  /** Bytes of metadata (0: none), at the payload offset of the slot. */
  metadataBytes: 5,
  /** Bytes of the message, right behind the metadata. */
  messageBytes: 6,
  /** REQUEST, PART: time left in microseconds, 0 for none, at most 2^32 - 1 (unsigned). */
  timeoutUs: 7,
  words: 8,
} as const;
/** `part`: a request that belongs to a stream; its metadata begins with a part header (docs/WIRE.md §8). */
export const SubOp = { request: 1, response: 2, part: 3 } as const;
/** Bit of a response's `method` word: the handler did not run. */
export const notRun = 0x100;
/** Bits of a bulk submission: its pieces are an image (docs/WIRE.md §2.4); the response goes into its sink or nowhere. */
export const submitImage = 1;
export const submitSinkOnly = 2;

/** Int32 words of one event. */
export const Ev = {
  /** EvKind */
  kind: 0,
  session: 1,
  /** REQUEST, CANCELLED: opaque call handle for the response. SETTLED, FAILED: the call slot that the request was submitted with. SENT: the token. */
  call: 2,
  /** REQUEST: method id. SETTLED: status from the peer. FAILED: bits of Held. CANCELLED: status (1 or 4). SESSION_DOWN: unused. */
  method: 3,
  /** Where the bytes are: 0 none; > 0 arena block of that number (one reference now belongs to JS); -1 the session's receive slab. */
  region: 4,
  /** Byte offset of `metadata | message` in the region. With an arena block, only the message is there, from its start, and metadata at `metadataOffset` of the slab; then 1 for an image, else 0. */
  offset: 5,
  metadataBytes: 6,
  messageBytes: 7,
  /** REQUEST: time left in microseconds, 0 none. FAILED: a Reason. SETTLED: what the server needed when `submitSinkOnly` refused it, else 0. */
  timeoutUs: 8,
  metadataOffset: 9,
  /** SETTLED, FAILED: 0 no, 1 maybe, 2 yes: whether the handler can have run. REQUEST: 1 for a part of a stream, else 0. */
  sent: 10,
  reserved: 11,
  words: 12,
} as const;
export const EvKind = {
  /** Server: a request is complete. Its bytes in the receive slab are valid only during the callback. */
  request: 1,
  /** Client: the call's response is here, no memory of the call is exposed any more. Bytes as above. */
  settled: 2,
  /** Client: the call ended without the peer's answer (session lost, refused here, cancelled). Nothing is exposed any more, unless it is held (Held). */
  failed: 3,
  /** Server: the client gave the call up; respond or not, the answer is dropped. */
  cancelled: 4,
  /** A bulk submission's memory (token) is no longer in use: drop references to its buffers. */
  sent: 5,
  /** The session is over; `sessionError(session)` says why. Comes after the last event of its calls. Exactly once. */
  sessionDown: 6,
  /** Send slots are free again after the stack was found empty. */
  slotsFree: 7,
  /** A registration was evicted: `call` and `method` are the low and high words of the buffer key. */
  evicted: 8,
  /** The session's queue pair is connected. After each connectSession() that returned '' there is one of this or of sessionDown, whichever comes first. */
  sessionUp: 9,
  /**
   * A large message of a stream waits until it is wanted, since what may be fetched ahead is. Server: `call` is the handle of the request (`want` it, or answer it unread),
   * and its metadata is there as in a REQUEST. Client: `call` is the call slot of the request that it answers.
   */
  partWaits: 10,
  /** Client: the peer has let go of a call that FAILED with Held.slot. The call slot is free. SENT has come before. */
  released: 11,
  /** Arena memory has come free after JS asked by Ctl.wantMemory. */
  memoryFree: 12,
  /** Calls have waited for arena memory for some time. Once in a context's life. */
  memoryShort: 13,
  /** The device was removed: its sessions go down, and nothing new can be made. Once. */
  deviceGone: 14,
} as const;
/** What a given-up call still has while the peer has not answered its cancel: `method` word of a FAILED event. */
export const Held = {
  /** Its call slot, until RELEASED. */
  slot: 1,
  /** The block that was given for the answer: the peer may still write to it, so it must be taken from the application. */
  sink: 2,
} as const;
/** In `keys` of `submitBulk`: the piece lies in an arena block that the application has, too. */
export const leasedMemory = -1;
/** What an arena block is for: memory/arena.h says how much of the arena each may have. */
export const Use = {
  /** A message of a stream on its way out. */
  part: 1,
  request: 2,
  response: 4,
  application: 6,
} as const;
/** Why a call failed here: `timeoutUs` word of a FAILED event. runtime/core/errors/failure.ts has the texts. */
export const Reason = {
  sessionLost: 1,
  cancelled: 2,
  deadline: 3,
  noMemory: 4,
  tooLarge: 5,
  registration: 6,
  /** Larger than the staging memory may ever be. */
  staging: 7,
  /** Memory of the request was transferred or detached while the call used it. */
  detached: 8,
} as const;

/** Int32 words of `control`. */
export const Ctl = {
  /** Submissions staged and not yet flushed: JS adds, native resets to 0. */
  staged: 0,
  /** Free send slots on the `freeSlots` stack: JS pops with `freeSlots[--control[freeSlots]]`. */
  freeSlots: 1,
  /** 1 while native code is inside the events callback and will flush when it returns. */
  inCallback: 2,
  /** JS sets it to 1 when it found no free slot: native then sends one slotsFree event. */
  wantSlots: 3,
  /** JS sets it to 1 when it found no arena memory, and flushes: native then sends one memoryFree event. */
  wantMemory: 4,
  /** Sessions of the context. */
  sessions: 5,
  words: 16,
} as const;

/** Int32 words of `sessionSlots`, by place of a session: send slots that native code holds for it; 1 when JS found that it may have none, so that slotsFree waits until it may. */
export const Slots = { held: 0, wanted: 1, words: 2 } as const;

export type Polling = 'adaptive' | 'busy' | 'event';

/** How the verbs fabric chooses its device and connects. */
export interface VerbsOptions {
  /** Such as `mlx5_0`. Without: the one that has `address`, else the first that can be used. */
  device?: string;
  /** Default: the one with `address`, else the first active one. */
  port?: number;
  /** Default: RoCE v2 on IPv4 before IPv6 before RoCE v1. */
  gidIndex?: number;
  /** IP address that is being served or dialled from; a hint. */
  address?: string;
  /** `auto`: rdma_cm where both sides have it, otherwise addresses travel over the sideband. */
  connect?: 'auto' | 'cm' | 'sideband';
  connectTimeoutMs?: number;
  /** A packet is sent again when no answer came for 4.096 us * 2^ackTimeout. Default 14: 67 ms. */
  ackTimeout?: number;
  /** That often, then the session is lost. Default 6: about half a second with the default ackTimeout. */
  retryCount?: number;
  /** How often a peer is asked again that answers that it is not ready (RNR); 7 is endless. Default: 7 where the peer pages (`onDemand`), else 0. */
  rnrRetry?: number;
  /** Of the packets' global header; on RoCE v2 the byte with DSCP. Default: `tos`. */
  trafficClass?: number;
  /** InfiniBand's service level, on RoCE the priority. Default: as rdma_cm says, else 0. */
  serviceLevel?: number;
  /** The type of service that rdma_cm is told, and iWARP's TCP gets. Default: none. */
  tos?: number;
}

export interface NativeOptions extends RuntimeNeeds {
  fabric: 'shm' | 'shm-fd' | 'verbs' | 'tcp' | 'sim';
  verbs?: VerbsOptions;
  polling: Polling;
  /** Message bytes a send slot or receive slot holds at most, metadata included (eager limit). */
  slotBytes: number;
  /** Send slots of this context. */
  sendSlots: number;
  arenaBytes: number;
  mrCacheBytes: number;
  mrCacheEntriesMax: number;
  mrCacheIdleMs: number;
  /**
   * How peers get at memory. `auto` (default): by windows, by copies in staging memory where the device has none. `staging`: by copies anyway.
   * `shared`: with the keys of all that is registered, for peers that are trusted.
   */
  exposure?: 'auto' | 'staging' | 'shared';
  /** Staging memory of each session at most. */
  stagingBytes?: number;
  /** Application buffers are registered on demand where the device can (explicit ODP): nothing of them is pinned. */
  onDemand?: boolean;
  /** sim only: seed of its scheduler. */
  seed?: number;
  /** sim only: nothing happens by itself, only in `stepSim()`. For tests that do something at each step of a call. */
  stepped?: boolean;
}

export interface SessionOptions {
  role: 'client' | 'server';
  /** Calls in flight at once, equal on both sides (negotiated in the hello), at most 4096. So many receives are posted, and a few more. */
  inflightMax: number;
  /** Calls open at once, those of streams included: at least `inflightMax`, at most 4096. Default `inflightMax`; equal on both sides. */
  callSlots?: number;
  /** Largest message accepted here, bytes. */
  messageMaxBytes: number;
  /** Largest message that the peer accepts, bytes. */
  peerMessageMaxBytes: number;
}

export interface SessionInfo {
  /** Name of the device, that of the fabric where it has only one. */
  device: string;
  /** Of the device; 0 where there are none. */
  port: number;
  state: 'connecting' | 'ready' | 'down';
  callsInFlight: number;
  sendCredits: number;
  security: 'window' | 'staging' | 'shared';
}

export interface NativeContext {
  readonly control: Int32Array;
  readonly submissions: Int32Array;
  readonly events: Int32Array;
  readonly freeSlots: Int32Array;
  readonly sessionSlots: Int32Array;
  /** No block of the arena is larger. */
  readonly arenaBytes: number;
  /** [0]: monotonic time in ms (`performance.now()` clock) as of the current turn. */
  readonly clock: Float64Array;
  /** All send slots: slot i starts at i * slotStride, its payload at + slotPayloadOffset, room for slotBytes. */
  readonly sendSlab: ArrayBuffer;
  readonly slotStride: number;
  readonly slotPayloadOffset: number;
  /** The peers of this fabric can write, at any time, to memory of large messages that they have once had a right to. */
  readonly peersKeepAccess: boolean;
  /** Submissions that fit before a flush is due. */
  readonly submissionsMax: number;
  /** Of the device. */
  readonly capabilities: VerbsCapabilities;
  /** verbs: device, port and addresses that it is reached by. Two contexts with the same one are for the same peers. */
  readonly path: string;

  /** Posts everything staged and wakes the pump. Cheap (no allocation): call it after about 16 staged entries, and once per turn. */
  flush(): void;

  /**
   * A queue pair in INIT with its receives posted. Throws with the limit's name when it cannot be had. The number is opaque (31 bits,
   * its low 12 bits are unique among the sessions alive) and not given to another session while anyone may still hold it.
   */
  createSession(options: SessionOptions): number;
  sessionAddress(session: number): Uint8Array;
  /**
   * Connects to the peer's address blob. Empty string: connected, or on the way, and a sessionUp or sessionDown event will tell; calls may be submitted
   * meanwhile. Otherwise why not (the session is then useless: close it). tcp: `host`, in numbers, and `port` say where the passive side's server listens; shm-fd: `host` is the path of its unix socket.
   */
  connectSession(session: number, peerAddress: Uint8Array, host?: string, port?: number): string;
  /** Receive slab of a session, for events with region -1. Detached after the session is closed. */
  receiveSlab(session: number): ArrayBuffer;
  /** Ends the session: queue pair to ERR, every call gets its FAILED event, then SESSION_DOWN. The number is free for reuse after that event. */
  closeSession(session: number, reason: string): void;
  sessionError(session: number): string;
  sessionInfo(session: number): SessionInfo;

  /**
   * A refusal (negative Reason) leaves slot and call with JS; no event follows.
   *
   * A request or response that does not fit a slot (or that carries a buffer for the answer). `pieces`, in order, make
   * up the message; each lies in an arena block or in the ArrayBuffer whose identity is keys[i] (0: arena, `leasedMemory`: arena memory of the application). Metadata is in `slot`,
   * at most slotBytes - 512 bytes; without metadata `slot` is -1.
   * `sink`: arena block to receive the response in, 0 none (the caller's reference stays with the caller). `use`: of a block that the pieces must be copied into. `flags`: submitImage, submitSinkOnly. Returns a token > 0 that a SENT event
   * will carry when the pieces are no longer in use (before or with the call's own end, of a held one its RELEASED), or a negative Reason when refused.
   */
  submitBulk(
    op: number,
    session: number,
    call: number,
    method: number,
    slot: number,
    metadataBytes: number,
    timeoutUs: number,
    pieces: readonly Uint8Array[],
    keys: readonly number[],
    sink: number,
    use: number,
    flags: number,
  ): number;

  /**
   * Client: gives a call up (reason: Reason.cancelled or Reason.deadline). Its FAILED or SETTLED event follows: within the next batch for a call that
   * exposed no memory, otherwise when the peer has let go of it or after kSettleGraceNs (10 ms), and then its call slot and memory are held until RELEASED.
   * Returns how many bytes of this side's arena the call was waiting for, for its response; 0: it was not.
   */
  cancel(session: number, call: number, reason: number): number;

  /** The application waits for the message that a partWaits event told of. Nothing happens when its call is over. */
  want(session: number, call: number): void;

  /** Why the system refused what the last call that found no memory wanted; empty: it was a limit of ours. */
  refusal(): string;
  /** Arena block of at least that size, one reference; 0 when the budget, or the share of this use or session, has no room. Without a session it counts for nobody. */
  allocBlock(bytes: number, use: number, session?: number): number;
  /** The block's memory. The same ArrayBuffer every time while the block lives. Collected: the block is released. */
  blockBuffer(block: number): ArrayBuffer;
  releaseBlock(block: number): void;
  /** The same for a block that nothing has come of: nobody who waits for memory is told of it (`memoryFree`). */
  discardBlock(block: number): void;
  /** The same, and detaches the block's ArrayBuffer: the application must not see what is written there from now on. */
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
  /** Batches of events go to this function, which must not throw. */
  onEvents(callback: (count: number) => void): void;
  /** A stepped simulation carries out its next event, in the order of the seed; what comes of it is delivered in the next turn of the event loop. False: there is none, and its clock, by which sessions go, has moved on by 5 ms. */
  stepSim(): boolean;
  /**
   * After deviceGone, when the last session is down: closes the device, which the system is waiting for. Leased blocks stay as they are; nothing else works
   * from then on but giving them back and close(). No callback after it returns.
   */
  leaveDevice(): void;
  /** Closes everything. No callback after it returns. */
  close(): void;
}

export interface NativeModule extends NativeSockets {
  createContext(options: NativeOptions): NativeContext;
  /** `neededBytes` are registered on each meanwhile; a device that does not allow that cannot be used. */
  verbsDevices(neededBytes: number): VerbsReport;
  /** Empty, or why this JS runtime cannot be used, and what to do. */
  readonly whyUnusable: string;
  /** Where the memory of a buffer begins. A double holds it: addresses have 48 bits, or 57. */
  address(buffer: ArrayBuffer): number;
  /** How long V8 is not to be made to collect in this thread: all that make it do so share a tenth of the thread's time. 0: it may be. */
  collectionWaitMs(): number;
  /** It has been made to collect, which took so long. */
  collectionDone(ms: number): void;
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
  loaded = { ...addon, createContext: (options) => addon.createContext({ ...needs, ...options }) };
  return loaded;
}
