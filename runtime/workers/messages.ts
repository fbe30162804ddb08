/**
 * The messages between the main thread and a worker of serveWorkers(). They are sent over a port that the
 * worker finds in its workerData.
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
 * `ready`: the worker takes connections. `here`: it answers `ask`. `stopping`: it takes no more connections.
 * `drained`: its server has been shut down. The worker closes the port when its `onDrained` is done, too.
 */
export type ToMain =
  /** The version of the worker. Builds before 0.1.0 send no version. */
  | { readonly type: 'ready'; readonly version?: number }
  | { readonly type: 'here' | 'stopping' | 'drained' }
  /** The answer to `metrics`. It is undefined when the worker has no registry or cannot read it. */
  | { readonly type: 'metrics'; readonly metrics: readonly object[] | undefined };

/** Keys in workerData for the port and for the version of the main thread. */
export const portKey = 'rdmaRpcPort';
export const versionKey = 'rdmaRpcHandover';

/**
 * The version of these messages. It is needed because the file of a worker can import another installation of
 * the package than the main thread does. Increase it when an older side would misread a message of a newer
 * side.
 */
export const handoverVersion = 1;

/**
 * Returns the reason why main thread and worker cannot work together, or '' when they can. A side that sends
 * no version has version 0.
 */
export function otherHandover(main: unknown = 0, worker: unknown = 0): string {
  if (main === worker) return '';
  return `serveWorkers() hands connections over in version ${String(main)}, and the worker takes them in version ${String(worker)}; let both import the same installation of rdma-rpc`;
}
