/**
 * The options of contexts and sessions of the native boundary (native.ts), and the information about a
 * session.
 */
import type { FabricName } from '../fabrics.ts';
import type { RuntimeNeeds } from './js-runtime.ts';

export type Polling = 'adaptive' | 'busy' | 'event';

/** The way in which the verbs fabric chooses its device and connects. */
export interface VerbsOptions {
  /**
   * The name of the device, such as `mlx5_0`, a pattern such as `mlx5_*`, or a list of these with commas. The
   * first usable device that matches is used. Default: the device that has `address`, or the first usable
   * device.
   */
  device?: string;
  /** Default: the port with `address`, or the first active port. */
  port?: number;
  /** Default: prefers RoCE v2 on IPv4, then RoCE v2 on IPv6, then RoCE v1. */
  gidIndex?: number;
  /**
   * Index in the port's table of P_Keys, for connections over the sideband; rdma_cm finds the partition
   * itself. Default 0.
   */
  pkeyIndex?: number;
  /** The local IP address on which to serve or from which to dial; a hint for the choice of a device. */
  address?: string;
  /** `auto`: uses rdma_cm where both sides have it; otherwise addresses travel over the sideband. */
  connect?: 'auto' | 'cm' | 'sideband';
  connectTimeoutMs?: number;
  /**
   * A packet is sent again when it is not acknowledged within 4.096 us * 2^ackTimeout. Default 16, which is
   * 268 ms.
   */
  ackTimeout?: number;
  /**
   * Number of resends before the session is lost. Default 6, which takes 1.9 s with the default
   * ackTimeout.
   */
  retryCount?: number;
  /**
   * Number of retries when the peer is not ready (RNR); 7 means no limit. Default: 7 when the peer uses
   * on-demand paging (`onDemand`), otherwise 0.
   */
  rnrRetry?: number;
  /**
   * Traffic class in the global header of packets. On RoCE v2 it is the byte that contains the DSCP. Default:
   * `tos`.
   */
  trafficClass?: number;
  /** Service level on InfiniBand, priority on RoCE. Default: the value from rdma_cm, otherwise 0. */
  serviceLevel?: number;
  /** Type of service for rdma_cm, and for the TCP connections of iWARP. Default: none. */
  tos?: number;
}

export interface NativeOptions extends RuntimeNeeds {
  fabric: FabricName;
  verbs?: VerbsOptions;
  polling: Polling;
  /** Whether other processes of this user may read the counters page. Default false. */
  countersPage?: boolean;
  /**
   * Size of a send slot or receive slot in bytes, which limits a message, with its metadata, that is sent
   * eagerly.
   */
  slotBytes: number;
  /** Number of send slots of this context. */
  sendSlots: number;
  arenaBytes: number;
  mrCacheBytes: number;
  mrCacheEntriesMax: number;
  mrCacheIdleMs: number;
  /**
   * The way in which peers access memory. `auto` (default) uses memory windows, or copies in staging memory
   * when the device has no windows. `staging` always uses copies. `shared` gives peers the keys of whole
   * registrations, and is only for trusted peers.
   */
  exposure?: 'auto' | 'staging' | 'shared';
  /** Largest staging memory of each session, in bytes. */
  stagingBytes?: number;
  /**
   * Registers application buffers on demand where the device can (explicit ODP), so that they are not pinned.
   */
  onDemand?: boolean;
  /**
   * Collects V8's young objects. It is called when leased messages may have been dropped. Default:
   * collector.ts.
   */
  collectYoung?: () => void;
  /** The clock of JS, whose time is written to the context's `clock`. Default: clock.ts. */
  clock?: () => number;
  /** For sim only: the seed of its scheduler. */
  seed?: number;
  /**
   * For sim only: the simulation advances only in `stepSim()`. Tests that act at each step of a call use it.
   */
  stepped?: boolean;
}

export interface SessionOptions {
  /** The role of this side in the session. The client makes the calls. */
  role: 'client' | 'server';
  /**
   * Whether this side starts the connection on the fabric, which exactly one of the two sides must do.
   * Default: true for the client.
   */
  active?: boolean;
  /**
   * Largest number of calls in flight, at most 4096. It is negotiated in the hello, so it is equal on both
   * sides. Slightly more receives than this number are posted.
   */
  inflightMax: number;
  /**
   * Number of call slots, including the slots for streams: at least `inflightMax`, at most 4096. It is equal
   * on both sides. Default `inflightMax`.
   */
  callSlots?: number;
  /**
   * Whether to use a credit pool, if the peer also uses one. Both sides then begin with few credits and get
   * more on demand, so that sessions may share receives.
   */
  creditPool?: boolean;
  /** Largest message that this side accepts, in bytes. */
  messageMaxBytes: number;
  /** Largest message that the peer accepts, in bytes. */
  peerMessageMaxBytes: number;
  /** Size of the peer's receives, in bytes. Default: the size of this side's receives. */
  peerSlotBytes?: number;
  /** The peer accepts messages in segments (docs/wire/frames.md §2.5). */
  peerTakesSegments?: boolean;
  /** The peer accepts short gather entries of a large request inline, in the frame. */
  peerTakesInline?: boolean;
  /**
   * For servers only: limit in bytes of arena memory for large requests of this session, and the same limit
   * again for large responses. Default: the session's share.
   */
  arenaBytesMax?: number;
  /**
   * For servers only, in microseconds: the deadline of calls whose client sets none, and the longest allowed
   * deadline. Default: none.
   */
  timeLimits?: { readonly defaultUs?: number; readonly maxUs?: number };
  /**
   * For devices: the time limit in ms of the attempt to connect, when it is shorter than that of the device.
   */
  connectTimeoutMs?: number;
  /**
   * Seals everything that leaves the session. `keys` has 32 bytes each for sent frames, received frames, sent
   * bulk and received bulk. The keys must be used for this session only.
   */
  seal?: { readonly cipher: string; readonly keys: Uint8Array };
}

/** Numbers of bytes of a session's connection. */
export interface SessionPath {
  /** Sent bytes that the peer's kernel has acknowledged. */
  acknowledged: number;
  /** Bytes that were given to this host's kernel and are not acknowledged. */
  pending: number;
  /** Bytes that have arrived. */
  received: number;
}

export interface SessionInfo {
  /** Name of the device, or the name of the fabric when the fabric has only one device. */
  device: string;
  /** Port of the device, or 0 for devices without ports. */
  port: number;
  state: 'connecting' | 'ready' | 'down';
  /** True when the peer or the network has ended the session, instead of this side. The peer may know why. */
  endedThere: boolean;
  callsInFlight: number;
  sendCredits: number;
  security: 'window' | 'staging' | 'shared';
}
