/** Settings and counters of this thread's native contexts. */

import { type ContextOptions, contextStats, setContextOptions } from '../boundary/contexts.ts';
import { checkedOptions, checkNames, type OptionRules, ownedBy } from '../core/options.ts';
import type { FabricName } from '../fabrics.ts';
import * as limits from '../limits.ts';
import type { Polling, Stats } from '../native/native.ts';

export interface RuntimeOptions {
  /**
   * The way in which the thread waits for events. With `adaptive` (default), it spins briefly after traffic
   * and sleeps when idle. With `busy`, it always spins and uses a whole CPU. With `event`, it never spins.
   */
  polling?: Polling;
  /**
   * Size of a message slot, in bytes. Larger messages are sent in several slots, or by READ and WRITE.
   * Default 8192; on the fabric shm, 17,408.
   */
  slotBytes?: number;
  /** Number of send slots, shared by all sessions of the thread. Default 1024. */
  sendSlots?: number;
  /** Size of the arena for large messages and leases, in bytes. Default 256 MiB. */
  arenaBytes?: number;
  /** Total size of application buffers that are kept registered. Default 256 MiB. */
  mrCacheBytes?: number;
  /** Number of application buffers that are kept registered. Default 1024. */
  mrCacheEntriesMax?: number;
  /** Time after which an unused registration ends. Default 10 s. */
  mrCacheIdleMs?: number;
  /**
   * The way in which peers can access the memory of this thread. `auto` (default) uses memory windows if the
   * device has them, and otherwise staging memory. `staging` always uses staging memory. `shared` lets peers
   * access all registered memory directly, for as long as a connection lasts. This mode is the fastest, and
   * is only for trusted peers.
   */
  exposure?: 'auto' | 'staging' | 'shared';
  /**
   * Limit of the staging memory of each connection, in bytes. The staging memory grows as needed. Large
   * messages are copied through it, so a message that is larger than this limit is refused. Default 16 MiB.
   */
  stagingBytes?: number;
  /**
   * The way in which buffers of the application are registered. With `on-demand`, the buffers are not pinned,
   * and their pages are loaded when they are used. Only devices with ODP support `on-demand`; other devices
   * refuse it.
   */
  registration?: 'pinned' | 'on-demand';
  /**
   * Whether other processes of this user can read counters, sessions and latencies of this thread (`rdma-rpc
   * top`, rdma-rpc/counters). Default true.
   */
  countersPage?: boolean;
  /**
   * Folder for the last protocol events of sessions that fail. Each such session writes one file, which
   * `rdma-rpc trace` can read. Default: the environment variable RDMA_RPC_TRACE_FOLDER. When neither is set,
   * no file is written.
   */
  traceFolder?: string;
  /** Seed of the scheduler of an in-process channel. Other channels ignore it. */
  seed?: number;
}

export const runtimeRules: OptionRules = ownedBy('configure', {
  polling: { kind: 'choice', values: ['adaptive', 'busy', 'event'], default: 'adaptive' },
  // `slotBytes` has no default here, because shm and devices have different defaults (slotBytesOn).
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
 * Sets options of this thread's contexts. Call it before the first channel or server is used. Throws when it
 * is called later, and for unknown names or invalid values.
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
 * Returns the counters of this thread's contexts, or of the contexts of one fabric. Each counter is the sum
 * over these contexts since they were opened. All counters are 0 when no context is open.
 */
export function stats(fabric?: FabricName): Stats {
  return contextStats(fabric);
}
