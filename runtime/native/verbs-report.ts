/**
 * The report on this machine's RDMA devices, for `rdma-rpc info` and for the choice of a fabric. It is part
 * of the native boundary (native.ts).
 */
export interface VerbsGid {
  index: number;
  gid: string;
  type: string;
  interface: string;
}
export interface VerbsPort {
  number: number;
  state: string;
  linkLayer: string;
  activeMtu: number;
  lid: number;
  gids: VerbsGid[];
}
/** The capabilities of a device, determined by using the device if that is possible. */
export interface VerbsCapabilities {
  maxInline: number;
  maxSge: number;
  maxSgeRead: number;
  maxQpWr: number;
  /** Size of the largest shared receive queue, or 0 when each session has its own receives. */
  maxSrqWr: number;
  maxRdAtomic: number;
  maxMsgBytes: number;
  /** Size limit of one WRITE, where WRITEs have a lower limit than other operations. */
  maxWriteBytes: number;
  /**
   * Longest message, in bytes, that is sent in several SENDs instead of by READ and WRITE. The value is 0
   * when messages are never sent in this way.
   */
  segmentedBytes: number;
  windows: boolean;
  immediate: boolean;
  onDemand: boolean;
  dmabuf: boolean;
  /** Whether registered memory counts against RLIMIT_MEMLOCK. */
  pinsMemory: boolean;
  /** Whether any memory of the application may be exposed to the peer in place. */
  anyMemory: boolean;
  /**
   * Whether memory of the application is copied first, because a CPU reads it after the work request was
   * posted.
   */
  copiesLate: boolean;
  /**
   * Size in bytes up to which it is cheaper to copy a request's memory first. The value is 0 when copying is
   * never cheaper.
   */
  copiedRequestBytes: number;
  peersKeepAccess: boolean;
  /** Whether READs place their data in memory that the peer may write (iWARP). */
  readsLandInStaging: boolean;
  /**
   * Properties that the device's driver promises and does not provide, and limits that all processes share.
   * Each note is a sentence.
   */
  notes: readonly string[];
}
export interface VerbsDevice {
  name: string;
  transport: string;
  /** The reason why the device cannot be used, or '' when it can be used. */
  whyNot: string;
  capabilities: VerbsCapabilities;
  ports: VerbsPort[];
}
export interface VerbsReport {
  /** The reason why the machine has no device, or '' when it has a device. */
  whyNone: string;
  /** The reason why rdma_cm cannot be used, or '' when it can be used. */
  whyNoCm: string;
  /** The value of RLIMIT_MEMLOCK: `unlimited` or a number of bytes. */
  memlock: string;
  devices: VerbsDevice[];
}
