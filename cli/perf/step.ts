/**
 * Instructions for one side of a test, and its results. They are exchanged with the measuring program
 * (program.ts), which has the same types in native/perf.
 */

export interface PerfOptions {
  /** `bare` means libibverbs without the verbs fabric. */
  readonly fabric: 'shm' | 'tcp' | 'verbs' | 'bare';
  /** The type of the queue pairs. */
  readonly connection: 'RC' | 'UC' | 'UD';
  readonly sharedReceives: boolean;
  readonly manager: boolean;
  readonly multicast: boolean;
  /** The numeric address of this side. It selects the device, and a peer dials it over tcp. */
  readonly host: string;
  readonly device?: string;
  readonly gidIndex?: number;
  readonly active: boolean;
  readonly queuePairs: number;
  readonly depth: number;
  readonly receiveDepth: number;
  /** Size of the longest message of all steps. */
  readonly bytesMax: number;
  readonly inlineMax: number;
  readonly validate: boolean;
  readonly events: boolean;
  readonly seed: number;
}

export interface PerfAddress {
  readonly addr: bigint;
  readonly bytes: bigint;
  readonly rkey: number;
  readonly queuePairs: readonly Uint8Array[];
}

export interface PerfLimits {
  readonly device: string;
  readonly messageMax: number;
  readonly atomic: boolean;
}

export interface PerfStep {
  readonly verb: 'send' | 'write' | 'read' | 'fetch_add' | 'compare_swap';
  readonly latency: boolean;
  /** Whether this side sends and measures. */
  readonly measures: boolean;
  /** Whether the peer sends and measures. */
  readonly receives: boolean;
  readonly bytes: number;
  /** Number of messages on each queue pair. */
  readonly messages: number;
  readonly durationNs: number;
  readonly signalEvery: number;
  readonly postList: number;
}

export interface PerfOutcome {
  readonly error: string;
  readonly messages: number;
  readonly received: number;
  readonly elapsedNs: number;
  readonly userNs: number;
  readonly systemNs: number;
  readonly latencyNs: Uint32Array;
  readonly peakNs: number;
  readonly corrupt: number;
  readonly firstCorrupt: string;
}
