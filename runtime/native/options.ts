/**
 * What contexts and sessions of the native boundary (native.ts) are made with, and what a session says of
 * itself.
 */
import type { FabricName } from '../fabrics.ts';
import type { RuntimeNeeds } from './js-runtime.ts';

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
  /**
   * How often a peer is asked again that answers that it is not ready (RNR); 7 is endless. Default: 7 where
   * the peer pages (`onDemand`), else 0.
   */
  rnrRetry?: number;
  /** Of the packets' global header; on RoCE v2 the byte with DSCP. Default: `tos`. */
  trafficClass?: number;
  /** InfiniBand's service level, on RoCE the priority. Default: as rdma_cm says, else 0. */
  serviceLevel?: number;
  /** The type of service that rdma_cm is told, and iWARP's TCP gets. Default: none. */
  tos?: number;
}

export interface NativeOptions extends RuntimeNeeds {
  fabric: FabricName;
  verbs?: VerbsOptions;
  polling: Polling;
  /** Other processes of this user may read the counters page. Default: no. */
  countersPage?: boolean;
  /** Message bytes a send slot or receive slot holds at most, metadata included (eager limit). */
  slotBytes: number;
  /** Send slots of this context. */
  sendSlots: number;
  arenaBytes: number;
  mrCacheBytes: number;
  mrCacheEntriesMax: number;
  mrCacheIdleMs: number;
  /**
   * How peers get at memory. `auto` (default): by windows, by copies in staging memory where the device has
   * none. `staging`: by copies anyway. `shared`: with the keys of all that is registered, for peers that are
   * trusted.
   */
  exposure?: 'auto' | 'staging' | 'shared';
  /** Staging memory of each session at most. */
  stagingBytes?: number;
  /**
   * Application buffers are registered on demand where the device can (explicit ODP): nothing of them is
   * pinned.
   */
  onDemand?: boolean;
  /**
   * Collects V8's young objects, when messages have been lent that may have been dropped. Default:
   * collector.ts.
   */
  collectYoung?: () => void;
  /** The clock of JS, whose time the context's `clock` has. Default: that of clock.ts. */
  clock?: () => number;
  /** sim only: seed of its scheduler. */
  seed?: number;
  /**
   * sim only: nothing happens by itself, only in `stepSim()`. For tests that do something at each step of a
   * call.
   */
  stepped?: boolean;
}

export interface SessionOptions {
  /** Who makes the calls of the session: this side as its client, or the peer. */
  role: 'client' | 'server';
  /**
   * Whether this side asks the fabric for the connection, which exactly one of the two does. Default: the
   * client.
   */
  active?: boolean;
  /**
   * Calls in flight at once, equal on both sides (negotiated in the hello), at most 4096. So many receives
   * are posted, and a few more.
   */
  inflightMax: number;
  /**
   * Calls open at once, those of streams included: at least `inflightMax`, at most 4096. Default
   * `inflightMax`; equal on both sides.
   */
  callSlots?: number;
  /**
   * The peer does so too: both begin with few credits and take more as they come, so receives may be shared
   * with other sessions.
   */
  creditPool?: boolean;
  /** Largest message accepted here, bytes. */
  messageMaxBytes: number;
  /** Largest message that the peer accepts, bytes. */
  peerMessageMaxBytes: number;
  /** What its receives hold; without: as much as this side's. */
  peerSlotBytes?: number;
  /** It puts messages together that come in segments (docs/wire/frames.md §2.5). */
  peerTakesSegments?: boolean;
  /** It takes short gather entries of a large request that come in its frame. */
  peerTakesInline?: boolean;
  /**
   * Of a server: arena memory that large requests of this session may hold at once, and as much again for
   * large answers. Default: as much as its share.
   */
  arenaBytesMax?: number;
  /**
   * Of a server, microseconds: the deadline of calls whose clients set none, and the latest one that there
   * may be. Default: none.
   */
  timeLimits?: { readonly defaultUs?: number; readonly maxUs?: number };
  /**
   * Seals all that leaves the session. `keys`, 32 bytes each: of frames sent, frames received, bulk sent,
   * bulk received; for this session alone.
   */
  seal?: { readonly cipher: string; readonly keys: Uint8Array };
}

export interface SessionInfo {
  /** Name of the device, that of the fabric where it has only one. */
  device: string;
  /** Of the device; 0 where there are none. */
  port: number;
  state: 'connecting' | 'ready' | 'down';
  /** The peer has ended it, or the network, and not this side: the peer may know why. */
  endedThere: boolean;
  callsInFlight: number;
  sendCredits: number;
  security: 'window' | 'staging' | 'shared';
}
