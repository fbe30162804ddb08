/**
 * `rdma-rpc/counters`: the counters of processes on this machine that use rdma-rpc, including this one, read
 * while they run, and those of its RDMA devices. Works without the addon.
 */

export type { Stats } from '../native/stats.ts';
export { type DeviceCounters, isTrouble, readDeviceCounters } from './device-counters.ts';
export type { ContextCounters, MethodCounters, SessionCounters } from './page.ts';
export { bucketsSince, percentile } from './percentile.ts';
export { type ProcessCounters, processesWithCounters, readCounters } from './processes.ts';
