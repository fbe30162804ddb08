/**
 * `rdma-rpc/workers`: a server on several threads behind one address. One entry for both halves: the main
 * thread's and the worker's.
 */
export { listenInWorker } from './listen-in-worker.ts';
export { serveWorkers } from './worker-group.ts';
export type { WorkerGroup, WorkerSummary, WorkersOptions } from './worker-group-type.ts';
