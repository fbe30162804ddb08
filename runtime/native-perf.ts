/** What the addon does for `rdma-rpc perf`: one side of a test on queue pairs of its own, without sessions. Part of native.ts; used by cli/perf. */
export interface PerfOptions {
  /** `bare`: libibverbs without the verbs fabric. */
  fabric: 'shm' | 'tcp' | 'verbs' | 'bare';
  /** bare: how queue pairs are connected. */
  connection: 'RC' | 'UC' | 'UD';
  /** tcp, passive side: the address, in numbers, at which its peer reaches it. */
  host: string;
  /** As of `NativeOptions`. */
  verbs: { device?: string; gidIndex?: number; address: string };
  active: boolean;
  queuePairs: number;
  depth: number;
  receiveDepth: number;
  /** The longest message of all steps. */
  bytesMax: number;
  inlineMax: number;
  validate: boolean;
  events: boolean;
  seed: number;
}

export interface PerfAddress {
  addr: bigint;
  bytes: bigint;
  rkey: number;
  queuePairs: Uint8Array[];
}

export interface PerfLimits {
  device: string;
  messageMax: number;
  atomic: boolean;
}

export interface PerfStep {
  verb: 'send' | 'write' | 'read' | 'fetch_add' | 'compare_swap';
  latency: boolean;
  /** This side sends and measures. */
  measures: boolean;
  /** The peer sends and measures. */
  receives: boolean;
  bytes: number;
  /** On each queue pair. */
  messages: number;
  durationNs: number;
  signalEvery: number;
  postList: number;
}

export interface PerfOutcome {
  error: string;
  messages: number;
  received: number;
  elapsedNs: number;
  userNs: number;
  systemNs: number;
  latencyNs: Uint32Array;
  peakNs: number;
  corrupt: number;
  firstCorrupt: string;
}

export interface NativePerf {
  readonly address: PerfAddress;
  readonly limits: PerfLimits;
  /** Ends with an empty string, or with why not. The active side calls it when the other one has. */
  connect(peer: PerfAddress, ended: (why: string) => void): void;
  prepare(step: PerfStep): void;
  /** Calls back with the number of its messages when this side has measured, and at the end, after stop() or an error, with what came of it. */
  run(step: PerfStep, told: (what: number | PerfOutcome) => void): void;
  /** The peer is through, and has sent so many messages in this step. */
  stop(expected: number): void;
  /** After a step: what a peer that has sent so many messages on each queue pair, in all steps, has left in this memory. */
  checkWritten(step: PerfStep, sent: number): PerfOutcome;
  close(): void;
}

export interface NativePerfModule {
  /** Throws, in one sentence, when the device cannot be had. */
  openPerf(options: PerfOptions): NativePerf;
}
