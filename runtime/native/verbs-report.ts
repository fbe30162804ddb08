/**
 * What native code says of the RDMA devices of this machine, for `rdma-rpc info` and the choice of a fabric.
 * Part of the native boundary (native.ts).
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
/** What a device can do, found out by trying where that is possible. */
export interface VerbsCapabilities {
  maxInline: number;
  maxSge: number;
  maxSgeRead: number;
  maxQpWr: number;
  /** Shared receives; 0: each session has its own. */
  maxSrqWr: number;
  maxRdAtomic: number;
  maxMsgBytes: number;
  /** Of one WRITE, where that is less. */
  maxWriteBytes: number;
  /** Longest message that goes in several SENDs instead of by READ and WRITE; 0: none does. */
  segmentedBytes: number;
  windows: boolean;
  immediate: boolean;
  onDemand: boolean;
  dmabuf: boolean;
  /** Registered memory counts against RLIMIT_MEMLOCK. */
  pinsMemory: boolean;
  /** Memory of the application may be shown to the peer as it is. */
  anyMemory: boolean;
  /** Memory of the application is copied first, since the CPU reads it after the post. */
  copiesLate: boolean;
  /**
   * A request of up to this many bytes costs less when memory of the application is copied first; 0: none
   * does.
   */
  copiedRequestBytes: number;
  peersKeepAccess: boolean;
  /** READs land in memory that the peer may write (iWARP). */
  readsLandInStaging: boolean;
}
export interface VerbsDevice {
  name: string;
  transport: string;
  /** Empty: it can be used. */
  whyNot: string;
  capabilities: VerbsCapabilities;
  ports: VerbsPort[];
}
export interface VerbsReport {
  /** Why there is no device at all; empty when there are some. */
  whyNone: string;
  /** Why rdma_cm cannot be used; empty when it can. */
  whyNoCm: string;
  /** RLIMIT_MEMLOCK: `unlimited` or a number of bytes. */
  memlock: string;
  devices: VerbsDevice[];
}
