/**
 * Several worker threads behind one address. The main thread listens. It hands each connection to the worker
 * that has the fewest connections among the workers that answer. The worker performs the handshake, and has
 * the queue pair and the calls. serveWorkers() uses this file on the main thread.
 */

import type { Socket } from 'node:net';
import { availableParallelism } from 'node:os';
import { UnidentifiedSockets } from '../control/handshake/unidentified-sockets.ts';
import { parseAddress } from '../control/socket/address.ts';
import { Listener } from '../control/socket/listener.ts';
import { socketRules } from '../control/socket/unix-path.ts';
import { TlsAcceptor } from '../control/tls/tls-server.ts';
import { promiseOf, textOf } from '../core/foreign.ts';
import { LimitedLog, type Log, logged, warn } from '../core/log.ts';
import { checkedOptions, checkedTimeMs, checkNames, type OptionRules } from '../core/options.ts';
import { RefusalWarnings } from '../core/refusal-warnings.ts';
import { inRoot } from '../core/scopes.ts';
import type { ThreadMetrics } from '../core/thread-metrics.ts';
import { processWarning, type Warn } from '../core/warnings.ts';
import * as limits from '../limits.ts';
import { Departure } from '../server/departure.ts';
import { serverRules } from '../server/server-options.ts';
import * as workerLimits from './limits.ts';
import { Unplaced } from './unplaced.ts';
import type { WorkerGroup, WorkerSummary, WorkersOptions } from './worker-group-type.ts';
import { WorkerThread, type WorkerThreadOwner } from './worker-thread.ts';

const rules: OptionRules = {
  tls: { kind: 'source' },
  socket: { kind: 'options', rules: socketRules },
  workers: { kind: 'integer', range: workerLimits.workers },
  onWorkerError: { kind: 'function' },
  log: { kind: 'function' },
};

/**
 * Throws for an invalid address and for options that belong to the servers in the workers. Runs before any
 * thread is started.
 */
function checkGiven(options: WorkersOptions): void {
  const own = ['address', 'workerData', ...Object.keys(rules)];
  const theirs = Object.keys(options ?? {}).find(
    (name) => !own.includes(name) && Object.hasOwn(serverRules, name),
  );
  if (theirs !== undefined) {
    const text = `${theirs} is an option of the server in each worker: createServer({ ${theirs}: … }) in its file`;
    throw new TypeError(`serveWorkers: ${text}`);
  }
  checkNames('serveWorkers', options, own);
  try {
    parseAddress(options.address);
  } catch (error) {
    throw new TypeError(`serveWorkers: ${(error as Error).message}`, { cause: error });
  }
}

class RpcWorkerGroup implements WorkerGroup, WorkerThreadOwner {
  readonly file: URL;
  readonly workerData: object | undefined;
  readonly #threads: readonly WorkerThread[];
  readonly #onError: ((error: Error) => void) | undefined;
  readonly #warn: Log = warn;
  readonly #listener: Listener;
  readonly #unidentified: UnidentifiedSockets;
  readonly #tls: TlsAcceptor | undefined;
  readonly #tellOfTls: Warn;
  readonly #unplaced: Unplaced;
  /** Undefined when the option `log` is set. */
  readonly #refusals: RefusalWarnings | undefined;
  #address = '';
  readonly #departure = new Departure();

  constructor(file: URL, { address: _, workerData, ...rest }: WorkersOptions) {
    const {
      workers = availableParallelism(),
      onWorkerError,
      socket,
      tls,
      log,
    } = checkedOptions<Pick<WorkersOptions, 'workers' | 'onWorkerError' | 'socket' | 'tls' | 'log'>>(
      'serveWorkers',
      rest,
      rules,
    );
    if (workerData !== undefined && (typeof workerData !== 'object' || workerData === null)) {
      throw new TypeError('serveWorkers: workerData must be an object');
    }
    this.file = file;
    this.workerData = workerData;
    this.#onError = onWorkerError;
    this.#threads = Array.from({ length: workers }, () => new WorkerThread(this));
    this.#unplaced = new Unplaced(this.#threads);
    this.#tellOfTls = log === undefined ? processWarning : logged(log);
    this.#tls = tls === undefined ? undefined : new TlsAcceptor('serveWorkers', tls, this.#tellOfTls);
    const limited = log && new LimitedLog(log);
    this.#refusals = log === undefined ? new RefusalWarnings() : undefined;
    this.#unidentified = new UnidentifiedSockets(
      (connection, peer) => this.#unplaced.add(connection, peer),
      this.#tls,
      (line, from, refused) => {
        limited?.write(line, from);
        if (refused) this.#refusals?.add(line);
      },
    );
    this.#listener = new Listener(
      (connection) => this.#unidentified.add(connection, this.#nameOf(connection)),
      socket,
    );
  }

  get address(): string {
    return this.#address;
  }

  get workers(): readonly WorkerSummary[] {
    return this.#threads.map(({ threadId, up, connections, restarts }) => ({
      threadId,
      up,
      connections,
      restarts,
    }));
  }

  async metrics(): Promise<readonly ThreadMetrics[]> {
    const read = await Promise.all(
      this.#threads.map(async (thread) => {
        const { threadId } = thread;
        const metrics = await thread.metrics();
        return metrics === undefined ? [] : [{ threadId, metrics }];
      }),
    );
    return read.flat();
  }

  shutdown(options: { graceMs?: number } = {}): Promise<void> {
    checkNames('shutdown', options, ['graceMs']);
    const graceMs = checkedTimeMs('shutdown: graceMs', options.graceMs ?? limits.graceMs.default);
    const endMs = Math.min(graceMs, limits.graceMs.max);
    if (!this.#departure.begun) this.#departure.begin(endMs, () => this.#end(endMs));
    return this.#departure.ended;
  }

  onShutdown(listener: () => unknown): void {
    this.#departure.add(listener);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  async start(address: string): Promise<void> {
    try {
      // Only TLS requires waiting here. Without TLS, the threads have been started when this function
      // returns.
      if (this.#tls !== undefined) {
        await this.#tls.ready();
        const trouble = this.#tls.certTrouble;
        if (trouble !== '')
          this.#tellOfTls(
            `listen ${address}: no client can be accepted on this address: the cert of tls ${trouble}`,
          );
      }
      await Promise.all(this.#threads.map((thread) => thread.start()));
      this.#address = await this.#listener.listen(address);
    } catch (error) {
      await this.shutdown({ graceMs: 0 });
      throw error;
    }
  }

  onWorkerError(error: Error): void {
    const text = `serveWorkers: a worker ended and is started again: ${error.message}`;
    const onError = this.#onError;
    if (onError === undefined) {
      this.#warn(text);
      return;
    }
    // Exceptions and rejections of onWorkerError are handled here, because no caller would handle them.
    const failed = (fault: unknown): void =>
      this.#warn(`${text}; and onWorkerError has failed: ${textOf(fault)}`);
    try {
      promiseOf(inRoot(() => onError(error)))?.catch(failed);
    } catch (fault) {
      failed(fault);
    }
  }

  onHere(thread: WorkerThread): void {
    this.#unplaced.here(thread);
  }

  onChange(thread: WorkerThread): void {
    this.#unplaced.changed(thread);
  }

  /** Returns the name of a client for logs. A client of a unix socket has no address of its own. */
  #nameOf({ remoteAddress, remotePort }: Socket): string {
    return remoteAddress === undefined ? this.#address : `${remoteAddress}:${remotePort}`;
  }

  async #end(graceMs: number): Promise<void> {
    this.#listener.close();
    this.#unidentified.close();
    this.#unplaced.refuseAll('the server is shutting down');
    await Promise.all(this.#threads.map((thread) => thread.end(graceMs)));
    this.#refusals?.sum();
  }
}

/**
 * Starts worker threads that run `file` and serves one address with all of them. In `file`, create a server
 * as usual and pass it to `listenInWorker(server)`. Resolves when all workers listen. Rejects with the first
 * error of a worker, or when the address is in use.
 */
export async function serveWorkers(file: URL | string, options: WorkersOptions): Promise<WorkerGroup> {
  if (typeof file === 'string' && !URL.canParse(file)) {
    const hint = "give new URL('./worker.js', import.meta.url), or pathToFileURL() of a path";
    throw new TypeError(`serveWorkers: file: ${JSON.stringify(file)} is no URL; ${hint}`);
  }
  checkGiven(options);
  const group = new RpcWorkerGroup(new URL(file), options);
  await group.start(options.address);
  return group;
}
