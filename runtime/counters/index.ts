/**
 * `rdma-rpc/counters`: the counters of processes of this machine that use rdma-rpc, this one included, read
 * while they run. Needs no addon.
 */
export type { Stats } from '../native/stats.ts';
export type { ContextCounters, MethodCounters, SessionCounters } from './page.ts';
export { bucketsSince, percentile } from './percentile.ts';
export { type ProcessCounters, processesWithCounters, readCounters } from './processes.ts';
