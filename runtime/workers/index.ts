/**
 * `rdma-rpc/workers`: a server on several threads behind one address. The main thread and the workers import
 * the same entry point.
 */
export type { ThreadMetrics } from '../core/thread-metrics.ts';
export { listenInWorker, type MetricsRegistry, type WorkerOptions } from './listen-in-worker.ts';
export { serveWorkers } from './worker-group.ts';
export type { WorkerGroup, WorkerSummary, WorkersOptions } from './worker-group-type.ts';
