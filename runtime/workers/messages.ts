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
  | { readonly type: 'shutdown'; readonly graceMs: number };

/**
 * `ready`: the worker takes connections; `here`: it answers `ask`; `stopping`: it takes no more. When its
 * server has been shut down, the worker closes the port.
 */
export interface ToMain {
  readonly type: 'ready' | 'here' | 'stopping';
}

/** Key in workerData. */
export const portKey = 'rdmaRpcPort';
