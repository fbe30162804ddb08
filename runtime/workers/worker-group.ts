/**
 * Several worker threads behind one address. The main thread listens and hands each connection to the worker with the fewest; handshake, queue
 * pair and calls are the worker's own. Used on the main thread, by serveWorkers().
 */
import type { Socket } from 'node:net';
import { availableParallelism } from 'node:os';
import { type Log, warn } from '../api/log.ts';
import { checkedOptions, checkedTimeMs, checkNames, type OptionRules } from '../api/options.ts';
import { Status } from '../call/status.ts';
import { Link } from '../control/link.ts';
import { Listener } from '../control/listener.ts';
import * as limits from '../limits.ts';
import { WorkerThread, type WorkerThreadOwner } from './worker-thread.ts';

export interface WorkersOptions {
  /** As for `server.listen`: `host:port`, `[ipv6]:port` or `unix:/path`. */
  address: string;
  /** Threads. Default: one for each CPU that this process may use. */
  workers?: number;
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

const rules: OptionRules = {
  workers: { kind: 'integer', range: limits.workers },
  onWorkerError: { kind: 'function' },
};

export class WorkerGroup implements WorkerThreadOwner {
  readonly file: URL;
  readonly workerData: object | undefined;
  readonly #threads: readonly WorkerThread[];
  readonly #onError: ((error: Error) => void) | undefined;
  readonly #warn: Log = warn;
  readonly #listener: Listener;
  #address = '';
  #next = 0;
  #shutdown: Promise<void> | undefined;

  /** @internal serveWorkers() is the way to make one */
  constructor(file: URL, { address: _, workerData, ...rest }: WorkersOptions) {
    const { workers = availableParallelism(), onWorkerError } = checkedOptions<
      Pick<WorkersOptions, 'workers' | 'onWorkerError'>
    >('serveWorkers', rest, rules);
    if (workerData !== undefined && (typeof workerData !== 'object' || workerData === null)) {
      throw new TypeError('serveWorkers: workerData must be an object');
    }
    this.file = file;
    this.workerData = workerData;
    this.#onError = onWorkerError;
    this.#threads = Array.from({ length: workers }, () => new WorkerThread(this));
    this.#listener = new Listener((socket) => this.#accept(socket));
  }

  /** Where clients connect to, with the port that was bound. */
  get address(): string {
    return this.#address;
  }

  /** The workers, each with the connections that it has now. */
  get workers(): readonly WorkerSummary[] {
    return this.#threads.map(({ threadId, up, connections, restarts }) => ({
      threadId,
      up,
      connections,
      restarts,
    }));
  }

  /**
   * Accepts no more connections, shuts every worker's server down with this grace (default 5000), and ends the threads. Always resolves, a few seconds
   * after the grace at the latest.
   */
  shutdown(options: { graceMs?: number } = {}): Promise<void> {
    checkNames('shutdown', options, ['graceMs']);
    const graceMs = checkedTimeMs('shutdown: graceMs', options.graceMs ?? limits.graceMs.default);
    this.#shutdown ??= this.#end(Math.min(graceMs, limits.graceMs.max));
    return this.#shutdown;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  /** @internal */
  async start(address: string): Promise<void> {
    try {
      await Promise.all(this.#threads.map((thread) => thread.start()));
      this.#address = await this.#listener.listen(address);
    } catch (error) {
      await this.shutdown({ graceMs: 0 });
      throw error;
    }
  }

  /** @internal */
  onWorkerError(error: Error): void {
    if (this.#onError === undefined)
      this.#warn(`serveWorkers: a worker ended and is started again: ${error.message}`);
    else this.#onError(error);
  }

  #accept(socket: Socket): void {
    const { remoteAddress, remotePort } = socket;
    const peer = remoteAddress === undefined ? this.#address : `${remoteAddress}:${remotePort}`;
    const thread = this.#freest();
    if (thread !== undefined) {
      thread.take(socket, peer);
      return;
    }
    const message = 'no worker of this server is up; try again soon';
    new Link(socket).close(message, { type: 'refusal', code: Status.UNAVAILABLE, message });
  }

  /** The one with the fewest connections; among equals, in turn. */
  #freest(): WorkerThread | undefined {
    let best: WorkerThread | undefined;
    for (let i = 0; i < this.#threads.length; ++i) {
      const thread = this.#threads[(this.#next + i) % this.#threads.length]!;
      if (thread.up && (best === undefined || thread.connections < best.connections)) best = thread;
    }
    ++this.#next;
    return best;
  }

  async #end(graceMs: number): Promise<void> {
    this.#listener.close();
    await Promise.all(this.#threads.map((thread) => thread.end(graceMs)));
  }
}

/**
 * Starts worker threads that run `file` and serves one address with all of them. In `file`, a server is made as ever and given to
 * `listenInWorker(server)`. Resolves when all of them listen. Rejects with the first error of a worker, or when the address is in use.
 */
export async function serveWorkers(file: URL | string, options: WorkersOptions): Promise<WorkerGroup> {
  const group = new WorkerGroup(new URL(file), options);
  await group.start(options.address);
  return group;
}
