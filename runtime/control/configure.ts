/** Settings and counters of this thread's native contexts. */

import { type ContextOptions, contextStats, setContextOptions } from '../boundary/contexts.ts';
import { checkedOptions, checkNames, type OptionRules, ownedBy } from '../core/options.ts';
import type { FabricName } from '../fabrics.ts';
import * as limits from '../limits.ts';
import type { Polling, Stats } from '../native/native.ts';

export interface RuntimeOptions {
  /**
   * `adaptive` (default): spins briefly after traffic, sleeps when idle. `busy`: always spins, a CPU per
   * thread. `event`: never spins.
   */
  polling?: Polling;
  /**
   * What a message slot holds; larger messages go in several, or by READ and WRITE. Default 8192, on shm
   * 17,408.
   */
  slotBytes?: number;
  /** Send slots, shared by all sessions of the thread. Default 1024. */
  sendSlots?: number;
  /** Arena for large messages and leases. Default 256 MiB. */
  arenaBytes?: number;
  /** Bytes of application buffers that are kept registered. Default 256 MiB. */
  mrCacheBytes?: number;
  /** Their number. Default 1024. */
  mrCacheEntriesMax?: number;
  /** A registration that is not used for so long ends. Default 10 s. */
  mrCacheIdleMs?: number;
  /**
   * What peers can reach of this thread's memory. `auto` (default): windows where the device has them,
   * staging memory elsewhere. `shared`: all registered memory, for as long as a connection lasts: the
   * fastest, for peers that are trusted.
   */
  exposure?: 'auto' | 'staging' | 'shared';
  /**
   * Staging memory of each connection at most: it grows to that. Large messages are copied through it, so one
   * that is larger than this is refused. Default 16 MiB.
   */
  stagingBytes?: number;
  /**
   * How buffers of the application are registered. `on-demand`: not pinned, pages come in when they are used;
   * only on devices that can (ODP), others refuse.
   */
  registration?: 'pinned' | 'on-demand';
  /**
   * Other processes of this user can see counters, sessions and latencies of this thread (`rdma-rpc top`,
   * rdma-rpc/counters). Default true.
   */
  countersPage?: boolean;
  /**
   * The last protocol events of a session that fails are written to a file in this folder, which `rdma-rpc
   * trace` reads. Default: RDMA_RPC_TRACE_FOLDER, else nowhere.
   */
  traceFolder?: string;
  /** In-process channel only: seed of its scheduler. */
  seed?: number;
}

export const runtimeRules: OptionRules = ownedBy('configure', {
  polling: { kind: 'choice', values: ['adaptive', 'busy', 'event'], default: 'adaptive' },
  // Without a default: shm has another one than devices (slotBytesOn).
  slotBytes: { kind: 'integer', range: { ...limits.slotBytes, default: undefined } },
  sendSlots: { kind: 'integer', range: limits.sendSlots },
  arenaBytes: { kind: 'integer', range: limits.arenaBytes },
  mrCacheBytes: { kind: 'integer', range: limits.mrCacheBytes },
  mrCacheEntriesMax: { kind: 'integer', range: limits.mrCacheEntriesMax },
  mrCacheIdleMs: { kind: 'integer', range: limits.mrCacheIdleMs },
  exposure: { kind: 'choice', values: ['auto', 'staging', 'shared'], default: 'auto' },
  stagingBytes: { kind: 'integer', range: limits.stagingBytes },
  registration: { kind: 'choice', values: ['pinned', 'on-demand'], default: 'pinned' },
  countersPage: { kind: 'boolean', default: true },
  traceFolder: {
    kind: 'text',
    default: process.env.RDMA_RPC_TRACE_FOLDER ?? '',
    maxBytes: limits.traceFolderBytes,
  },
  seed: { kind: 'integer', range: { default: 1, min: 0, max: 0xffff_ffff } },
});

/**
 * Sets options of this thread's contexts. Call it before the first channel or server is used; throws
 * afterwards, and for unknown names or bad values.
 */
export function configure(options: RuntimeOptions): void {
  checkNames('configure', options, Object.keys(runtimeRules));
  const { registration, ...rest } = checkedOptions<ContextOptions & Required<RuntimeOptions>>(
    'configure',
    options,
    runtimeRules,
  );
  setContextOptions({ ...rest, onDemand: registration === 'on-demand' });
}

/**
 * Counters of this thread's contexts (or of one fabric's) since each was opened, added up; zeros when none is
 * open.
 */
export function stats(fabric?: FabricName): Stats {
  return contextStats(fabric);
}
