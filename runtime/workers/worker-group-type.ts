/** The types of serveWorkers(): its options and its result. The class is in worker-group.ts. */

import type { SocketFile } from '../control/socket/unix-path.ts';
import type { ServerTls, TlsSource } from '../control/tls/tls-options.ts';
import type { ThreadMetricsSource } from '../core/thread-metrics.ts';

export interface WorkersOptions {
  /** The address of the group: `host:port`, `[ipv6]:port` or `unix:/path`, as for `server.listen`. */
  address: string;
  /** Number of threads. Default: one for each CPU that this process may use. */
  workers?: number;
  /** The TLS options, as for `createServer`. The servers in the workers must not have this option. */
  tls?: TlsSource<ServerTls>;
  /**
   * Receives a line for each connection that TLS ends before a worker has received it, and for problems with
   * the files of `tls`. Default: process warnings are shown for the files and for the first refused client;
   * further refusals are counted and summed up once a minute.
   */
  log?: (line: string) => void;
  /** Permissions and owner of the file of a unix socket, as for `createServer`. */
  socket?: SocketFile;
  /** Values for the workers, available in `workerData` of `node:worker_threads`. */
  workerData?: object;
  /**
   * Receives the reason when a worker ends unexpectedly. The worker is started again. Default: a process
   * warning.
   */
  onWorkerError?: (error: Error) => void;
}

export interface WorkerSummary {
  /** The thread id, or -1 while the worker is being restarted. */
  readonly threadId: number;
  /** Whether the worker takes connections. */
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
   * Accepts no more connections, shuts every worker's server down, and ends the threads. Calls in flight have
   * `graceMs` to finish (default 5000). Always resolves, at the latest a few seconds after this time.
   */
  shutdown(options?: { graceMs?: number }): Promise<void>;
  /**
   * Calls `listener` when shutdown() begins, before the workers learn of it. If shutdown() has already begun,
   * calls it at once. Promises that listeners return are awaited for at most a second of the grace period. In
   * this time the group serves as before, so that it can leave a list of servers first.
   */
  onShutdown(listener: () => unknown): void;
}
