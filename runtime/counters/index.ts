/**
 * `rdma-rpc/counters`: reads the counters of processes on this machine that use rdma-rpc, including this
 * process, while they run. It also reads the counters of RDMA devices. It works without the addon.
 */

export type { Stats } from '../native/stats.ts';
export { type DeviceCounters, isTrouble, readDeviceCounters } from './device-counters.ts';
export type { ContextCounters, MethodCounters, SessionCounters } from './page.ts';
export { bucketsSince, percentile } from './percentile.ts';
export { type ProcessCounters, processesWithCounters, readCounters } from './processes.ts';
