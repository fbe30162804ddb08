/**
 * The messages between the main thread and a worker of serveWorkers(), over a port that the worker finds in
 * its workerData.
 */
import type { MessagePort } from 'node:worker_threads';
import type { SocketAddresses } from './port-duplex.ts';

export type ToWorker =
  | {
      readonly type: 'connection';
      readonly port: MessagePort;
      readonly from: SocketAddresses;
      readonly peer: string;
    }
  /** Asks whether the thread is free. */
  | { readonly type: 'ask' }
  /** Asks for the metrics of the thread. */
  | { readonly type: 'metrics' }
  | { readonly type: 'shutdown'; readonly graceMs: number };

/**
 * `ready`: the worker takes connections; `here`: it answers `ask`; `stopping`: it takes no more; `drained`:
 * its server has been shut down. The worker closes the port when its `onDrained` is done as well.
 */
export type ToMain =
  | { readonly type: 'ready' | 'here' | 'stopping' | 'drained' }
  /** Answers `metrics`; undefined when the worker has no registry, or cannot read it. */
  | { readonly type: 'metrics'; readonly metrics: readonly object[] | undefined };

/** Key in workerData. */
export const portKey = 'rdmaRpcPort';
