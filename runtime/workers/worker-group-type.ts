/** The types of serveWorkers(): its options and its result. The class is in worker-group.ts. */

import type { SocketFile } from '../control/socket/unix-path.ts';
import type { ServerTls, TlsSource } from '../control/tls/tls-options.ts';
import type { ThreadMetricsSource } from '../core/thread-metrics.ts';

export interface WorkersOptions {
  /** As for `server.listen`: `host:port`, `[ipv6]:port` or `unix:/path`. */
  address: string;
  /** Number of threads. Default: one for each CPU that this process may use. */
  workers?: number;
  /** As for `createServer`; the workers' servers have no such option. */
  tls?: TlsSource<ServerTls>;
  /**
   * Gets a line for each connection that TLS ends before a worker has it, as a server's log does, and for
   * problems with the files of `tls`. Default: process warnings for the files and for refused clients, of
   * which the first is shown and further ones are summed up once a minute.
   */
  log?: (line: string) => void;
  /** As for `createServer`: the file of a unix socket. */
  socket?: SocketFile;
  /** Values for the workers, available in `workerData` of `node:worker_threads`. */
  workerData?: object;
  /**
   * Called with the reason when a worker ends unexpectedly; it is started again. Default: a process warning.
   */
  onWorkerError?: (error: Error) => void;
}

export interface WorkerSummary {
  /** -1 while it is being restarted. */
  readonly threadId: number;
  /** Whether it takes connections. */
  readonly up: boolean;
  readonly connections: number;
  readonly restarts: number;
}

/** Threads that run servers, and their common address. */
export interface WorkerGroup extends AsyncDisposable, ThreadMetricsSource {
  /** The address for clients, with the bound port. */
  readonly address: string;
  /** The workers with their current connections. */
  readonly workers: readonly WorkerSummary[];
  /**
   * Accepts no more connections, shuts every worker's server down with this grace (default 5000), and ends
   * the threads. Always resolves, at the latest a few seconds after the grace.
   */
  shutdown(options?: { graceMs?: number }): Promise<void>;
}
