/**
 * Worker threads behind one address as applications see them: what serveWorkers() takes and gives. The class
 * behind them is in worker-group.ts.
 */

import type { SocketFile } from '../control/socket/unix-path.ts';
import type { ServerTls, TlsSource } from '../control/tls/tls-options.ts';

export interface WorkersOptions {
  /** As for `server.listen`: `host:port`, `[ipv6]:port` or `unix:/path`. */
  address: string;
  /** Threads. Default: one for each CPU that this process may use. */
  workers?: number;
  /** As for `createServer`; the workers' servers have none of their own. */
  tls?: TlsSource<ServerTls>;
  /**
   * Gets a line of each connection that ends before a worker has it, as the log of a server does, and those
   * about files of `tls`. Default: nothing, and process warnings for the files.
   */
  log?: (line: string) => void;
  /** As for `createServer`: the file of a unix socket. */
  socket?: SocketFile;
  /** Values for the workers, which find them in `workerData` of `node:worker_threads`. */
  workerData?: object;
  /** Told why a worker has ended that was not told to; it is started again. Default: a process warning. */
  onWorkerError?: (error: Error) => void;
}

export interface WorkerSummary {
  /** -1 while it is being restarted. */
  readonly threadId: number;
  /** Takes connections. */
  readonly up: boolean;
  readonly connections: number;
  readonly restarts: number;
}

/** Threads that run servers, and the address where they are reached. */
export interface WorkerGroup extends AsyncDisposable {
  /** Where clients connect to, with the port that was bound. */
  readonly address: string;
  /** The workers, each with the connections that it has now. */
  readonly workers: readonly WorkerSummary[];
  /**
   * Accepts no more connections, shuts every worker's server down with this grace (default 5000), and ends
   * the threads. Always resolves, a few seconds after the grace at the latest.
   */
  shutdown(options?: { graceMs?: number }): Promise<void>;
}
