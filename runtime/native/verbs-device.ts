/**
 * The native half of `rdma-rpc/verbs`: devices and their objects by number, and the records in which work
 * requests and completions cross the boundary (native/binding/verbs, native/checked). It is part of the
 * native boundary (native.ts). runtime/verbs uses it, on the thread that opened the device.
 */
import type { VerbsOptions } from './options.ts';
import type { VerbsCapabilities } from './verbs-report.ts';

/** The reason why native code refused a call; `cause` is a position in `causes` (runtime/verbs/errors.ts). */
export interface NativeRefusal {
  readonly cause: number;
  readonly text: string;
}

export interface NativeOpenOptions {
  readonly fabric: 'sim' | 'shm' | 'tcp' | 'verbs';
  readonly seed?: number;
  readonly lossPpm?: number;
  readonly duplicatePpm?: number;
  readonly host?: string;
  /**
   * For tcp: a server's listener accepts the connections and hands them over, so this device has no listener
   * of its own.
   */
  readonly handedOver?: boolean;
  readonly verbs?: VerbsOptions;
  readonly onDemand?: boolean;
}

export interface NativeQpOptions {
  /** The position of the type in `qpTypes` (runtime/verbs/constants.ts). */
  readonly type: number;
  readonly qkey: number;
  /** The number of a shared receive queue, for a queue pair without receives of its own. */
  readonly srq?: number;
  readonly cq: number;
  readonly sendWrMax: number;
  readonly recvWrMax: number;
  readonly sgeMax: number;
  readonly active: boolean;
  readonly steps: boolean;
}

/**
 * A device that `rdma-rpc/verbs` has opened. A thread may open any number of devices. Calls with the number
 * of a closed object are refused.
 */
export interface NativeVerbsDevice {
  readonly capabilities: VerbsCapabilities;
  /** Allocates memory that stays mapped as long as a region or an ArrayBuffer uses it. */
  allocBuffer(bytes: number): ArrayBuffer | NativeRefusal;
  /** Returns whether these bytes lie in memory of `allocBuffer`, of any device of this thread. */
  owns(bytes: Uint8Array): boolean;
  /**
   * Registers bytes of `allocBuffer` memory or of a SharedArrayBuffer. Memory of any other kind cannot be
   * registered, because V8 may move it.
   */
  regMr(
    bytes: Uint8Array,
    access: number,
  ):
    | { readonly number: number; readonly addr: number; readonly lkey: number; readonly rkey: number }
    | NativeRefusal;
  createCq(depth: number): number | NativeRefusal;
  createQp(options: NativeQpOptions): { readonly number: number; readonly qpNum: number } | NativeRefusal;
  createSrq(cq: number, wrMax: number): number | NativeRefusal;
  createAh(
    gid: Uint8Array,
    lid: number,
    serviceLevel: number,
    trafficClass: number,
    hopLimit: number,
  ): number | NativeRefusal;
  allocMw(): number | NativeRefusal;
  /** Returns the key of the window's last bind, or 0 before the first bind. */
  mwRkey(mw: number): number;
  closeMw(mw: number): void;
  closeSrq(srq: number): void;
  closeAh(ah: number): void;
  armLimit(srq: number, receives: number): NativeRefusal | undefined;
  srqRoom(srq: number): number;
  postShared(srq: number, rows: Float64Array, count: number): NativeRefusal | undefined;
  /** Moves the queue pair to the state with that position in `states`. */
  modify(qp: number, state: number): NativeRefusal | undefined;
  multicast(qp: number, group: Uint8Array, joins: boolean): NativeRefusal | undefined;
  gid(): Uint8Array | NativeRefusal;
  /** Returns up to 16 events: for each event its name, followed by the number of its queue pair. */
  events(): readonly (string | number)[];
  /**
   * Returns the reason why the device lacks the feature with that position in `features`, or '' when the
   * device has it.
   */
  whyNot(feature: number): string;
  closeMr(mr: number): void;
  closeCq(cq: number): void;
  closeQp(qp: number): void;
  address(qp: number): Uint8Array | NativeRefusal;
  /**
   * Begins to connect. `host` and `port` (or a path, without a port) replace the destination that the address
   * contains. `words` are those of NativeContext.connectSession.
   */
  connect(
    qp: number,
    address: Uint8Array,
    host?: string,
    port?: number,
    words?: Uint8Array,
  ): NativeRefusal | undefined;
  /** Returns the state as a position in `states` (runtime/verbs/constants.ts), or -1. */
  state(qp: number): number;
  /** Returns the reason why the queue pair went to ERR by itself, or '' when no reason is known. */
  error(qp: number): string;
  toError(qp: number): void;
  room(qp: number, ofReceives: boolean): number;
  /**
   * Posts `count` records of SendRow with room for `sges` entries each. It posts either all of them or none.
   * Behind the records is their stamp (runtime/verbs/stamps.ts). Records with the stamp of the queue's
   * previous call are not read again.
   */
  postSend(qp: number, rows: Float64Array, count: number, sges: number): NativeRefusal | undefined;
  postRecv(qp: number, rows: Float64Array, count: number): NativeRefusal | undefined;
  /** Fills records of CompletionRow. Returns the number of filled records, or -1 for a closed queue. */
  poll(cq: number, rows: Float64Array): number;
  /**
   * Lets connection attempts proceed without returning completions. Returns false when that is not possible.
   */
  drive(cq: number): boolean;
  /**
   * Calls `callback` once when the next completion arrives. Returns false when a completion may already be
   * there, and a text with the reason when the event loop cannot wait.
   */
  arm(cq: number, callback: () => void, solicitedOnly: boolean): boolean | string;
  counters(): { readonly queuePairs: number; readonly memoryRegions: number; readonly memoryBytes: number };
  isGone(): boolean;
  /** Closes the device and its objects. */
  close(): void;
}

/**
 * Columns of a work request. Its scatter/gather entries (SgeRow) follow the header. A bind has its window in
 * `ah`, its range in `remoteAddr` and the two columns of `compare`, its region's lkey in `rkey`, and its
 * rights in `swapLow`.
 */
export const SendRow = {
  wrId: 0,
  opcode: 1,
  flags: 2,
  sges: 3,
  remoteAddr: 4,
  rkey: 5,
  imm: 6,
  invalidateRkey: 7,
  compareHigh: 8,
  compareLow: 9,
  swapHigh: 10,
  swapLow: 11,
  ah: 12,
  remoteQpn: 13,
  remoteQkey: 14,
  header: 15,
} as const;

export const SgeRow = { addr: 0, length: 1, lkey: 2, words: 3 } as const;

export const RecvRow = { wrId: 0, addr: 1, length: 2, lkey: 3, words: 4 } as const;

export const CompletionRow = {
  wrId: 0,
  status: 1,
  opcode: 2,
  flags: 3,
  qpNum: 4,
  bytes: 5,
  imm: 6,
  invalidatedRkey: 7,
  srcQp: 8,
  words: 9,
} as const;
