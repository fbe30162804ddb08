/**
 * The report on this machine's RDMA devices, for `rdma-rpc info` and for the choice of a fabric. Part of the
 * native boundary (native.ts).
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
/** The capabilities of a device, tested by use where that is possible. */
export interface VerbsCapabilities {
  maxInline: number;
  maxSge: number;
  maxSgeRead: number;
  maxQpWr: number;
  /** Size of the largest shared receive queue; 0 when each session has its own receives. */
  maxSrqWr: number;
  maxRdAtomic: number;
  maxMsgBytes: number;
  /** Limit of one WRITE, where that is lower. */
  maxWriteBytes: number;
  /** Longest message that is sent in several SENDs instead of by READ and WRITE; 0 when none is. */
  segmentedBytes: number;
  windows: boolean;
  immediate: boolean;
  onDemand: boolean;
  dmabuf: boolean;
  /** Registered memory counts against RLIMIT_MEMLOCK. */
  pinsMemory: boolean;
  /** Any memory of the application may be exposed to the peer in place. */
  anyMemory: boolean;
  /** Memory of the application is copied first, since a CPU reads it after the work request was posted. */
  copiesLate: boolean;
  /** Size up to which it is cheaper to copy a request's memory first; 0 when that is never cheaper. */
  copiedRequestBytes: number;
  peersKeepAccess: boolean;
  /** READs place their data in memory that the peer may write (iWARP). */
  readsLandInStaging: boolean;
  /** Promises of its driver that it does not keep, and limits that all processes share, as sentences. */
  notes: readonly string[];
}
export interface VerbsDevice {
  name: string;
  transport: string;
  /** Why the device cannot be used; empty when it can. */
  whyNot: string;
  capabilities: VerbsCapabilities;
  ports: VerbsPort[];
}
export interface VerbsReport {
  /** Why the machine has no device; empty when it has one. */
  whyNone: string;
  /** Why rdma_cm cannot be used; empty when it can. */
  whyNoCm: string;
  /** RLIMIT_MEMLOCK: `unlimited` or a number of bytes. */
  memlock: string;
  devices: VerbsDevice[];
}
