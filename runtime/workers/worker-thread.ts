/**
 * One worker of a group: its thread, its connections, and its restarts. A WorkerGroup owns this object and
 * uses it on the main thread.
 */
import type { Socket } from 'node:net';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { clockMs } from '../clock.ts';
import { tlsSecretOf } from '../control/handshake/binding.ts';
import { verifiedOf } from '../control/peer-identity.ts';
import { handoffRefusals } from '../control/socket/handoff.ts';
import { closeTimeoutMs } from '../limits.ts';
import { workerDrainedMs, workerMetricsMs, workerRestartMs, workerStartTimeoutMs } from './limits.ts';
import {
  handoverVersion,
  otherHandover,
  portKey,
  type ToMain,
  type ToWorker,
  versionKey,
} from './messages.ts';
import { PortDuplex } from './port-duplex.ts';
import type { Place } from './unplaced.ts';

export interface WorkerThreadOwner {
  readonly file: URL;
  readonly workerData: object | undefined;
  /** Runs when a thread has ended unexpectedly or cannot be started. It must not throw. */
  onWorkerError(error: Error): void;
  /** Runs when the thread has answered. */
  onHere(thread: WorkerThread): void;
  /** Runs when `up` has changed. */
  onChange(thread: WorkerThread): void;
}

type Metrics = readonly object[] | undefined;

function newPromise<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

function within(ms: number, promise: Promise<unknown>): Promise<unknown> {
  return Promise.race([promise, new Promise((resolve) => setTimeout(resolve, ms).unref())]);
}

export class WorkerThread implements Place {
  /** Number of starts after the first. */
  restarts = 0;
  /** Current number of connections. */
  connections = 0;
  readonly #owner: WorkerThreadOwner;
  #worker: Worker | undefined;
  #port: MessagePort | undefined;
  #up = false;
  /** The time at which the worker began to listen, or infinity before that. */
  #upSinceMs = Number.POSITIVE_INFINITY;
  #pauseMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #ending = false;
  #exited: Promise<void> = Promise.resolve();
  /** Runs when the server of the worker has been shut down. */
  #onDrained: (() => void) | undefined;
  /** The pending request for metrics. It is undefined when no request is pending. */
  #reading: { readonly promise: Promise<Metrics>; readonly done: (metrics: Metrics) => void } | undefined;

  constructor(owner: WorkerThreadOwner) {
    this.#owner = owner;
  }

  /** Whether the worker takes connections. */
  get up(): boolean {
    return this.#up;
  }

  get threadId(): number {
    return this.#worker?.threadId ?? -1;
  }

  /**
   * Resolves when the worker listens. Rejects when the worker ends before that, with the error that ended it.
   */
  start(): Promise<void> {
    const { port1, port2 } = new MessageChannel();
    this.#upSinceMs = Number.POSITIVE_INFINITY;
    let worker: Worker;
    try {
      worker = new Worker(this.#owner.file, {
        workerData: { ...this.#owner.workerData, [portKey]: port2, [versionKey]: handoverVersion },
        transferList: [port2],
      });
    } catch (error) {
      // `workerData` cannot be sent to a thread, or memory is exhausted.
      port1.close();
      return Promise.reject(error);
    }
    this.#worker = worker;
    this.#port = port1;
    let failure: Error | undefined;
    let listened = false;
    const timer = setTimeout(() => {
      failure = new Error(`${this.#owner.file.href}: no listenInWorker() within ${workerStartTimeoutMs} ms`);
      void worker.terminate();
    }, workerStartTimeoutMs);
    return new Promise((resolve, reject) => {
      this.#exited = new Promise((exited) => {
        worker.once('exit', (code) => {
          const error = failure ?? new Error(`a worker of ${this.#owner.file.href} ended with code ${code}`);
          clearTimeout(timer);
          this.#gone(port1);
          exited();
          if (this.#ending) resolve();
          else if (listened) this.#restart(error);
          else reject(error);
        });
      });
      worker.on('error', (error) => {
        failure ??= error instanceof Error ? error : new Error(String(error));
      });
      // The server of the worker has been shut down, but other code of the application may keep the thread
      // alive.
      port1.once('close', () => {
        if (!this.#ending) setTimeout(() => void worker.terminate(), closeTimeoutMs).unref();
      });
      port1.on('message', (message: ToMain) => {
        if (message.type === 'here') this.#owner.onHere(this);
        else if (message.type === 'metrics') this.#reading?.done(message.metrics);
        else if (message.type === 'drained') this.#onDrained?.();
        if (message.type !== 'ready' && message.type !== 'stopping') return;
        const why = message.type === 'ready' ? otherHandover(handoverVersion, message.version) : '';
        if (why !== '') {
          failure ??= new Error(`${this.#owner.file.href}: ${why}`);
          void worker.terminate();
          return;
        }
        this.#setUp(message.type === 'ready');
        if (!this.#up) return;
        clearTimeout(timer);
        listened = true;
        this.#upSinceMs = clockMs();
        resolve();
      });
    });
  }

  /** Asks whether the thread is free. `onHere` is called as soon as the thread is free. */
  ask(): void {
    this.#port?.postMessage({ type: 'ask' } satisfies ToWorker);
  }

  /**
   * Resolves with the metrics of the worker's registry. Resolves with undefined when the worker has no
   * registry, is not up, or does not answer in time. Callers that come while a request is pending share its
   * answer.
   */
  metrics(): Promise<Metrics> {
    if (!this.#up || this.#port === undefined) return Promise.resolve(undefined);
    if (this.#reading !== undefined) return this.#reading.promise;
    const { promise, resolve } = newPromise<Metrics>();
    const done = (metrics: Metrics): void => {
      clearTimeout(late);
      this.#reading = undefined;
      resolve(metrics);
    };
    const late = setTimeout(done, workerMetricsMs, undefined).unref();
    this.#reading = { promise, done };
    this.#port.postMessage({ type: 'metrics' } satisfies ToWorker);
    return promise;
  }

  /** Hands a connection to the thread. */
  take(socket: Socket, peer: string): void {
    const { port1, port2 } = new MessageChannel();
    const { remoteAddress, remotePort, localAddress } = socket;
    const from = {
      remoteAddress,
      remotePort,
      localAddress,
      handoffRefusals: handoffRefusals(socket),
      verified: verifiedOf(socket),
      tlsSecret: tlsSecretOf(socket),
    };
    this.#port?.postMessage({ type: 'connection', port: port2, from, peer } satisfies ToWorker, [port2]);
    const relay = new PortDuplex(port1);
    ++this.connections;
    relay.once('close', () => {
      --this.connections;
      // Send the worker's last bytes before the end. A peer that reads nothing must not delay the end for
      // long.
      socket.destroySoon();
      setTimeout(() => socket.destroy(), closeTimeoutMs).unref();
    });
    socket.once('close', () => relay.destroy());
    socket.on('error', () => undefined);
    socket.pipe(relay).pipe(socket);
  }

  /** Resolves when the thread has ended by itself, or was terminated soon after `graceMs`. */
  async end(graceMs: number): Promise<void> {
    this.#ending = true;
    clearTimeout(this.#timer);
    const worker = this.#worker;
    if (worker === undefined) return;
    const port = this.#port!;
    let hasDrained = false;
    const drained = new Promise<void>((resolve) => {
      this.#onDrained = () => {
        hasDrained = true;
        resolve();
      };
    });
    const over = Promise.race([new Promise((resolve) => port.once('close', resolve)), this.#exited]);
    port.postMessage({ type: 'shutdown', graceMs } satisfies ToWorker);
    await within(graceMs + closeTimeoutMs, Promise.race([drained, over]));
    // Only a worker that has drained gets time for its `onDrained`. A worker that is stuck gets no time.
    if (hasDrained) await within(workerDrainedMs + closeTimeoutMs, over);
    // A handler that never ends may keep a timer or a socket, so the thread is terminated after a short time.
    await within(closeTimeoutMs, this.#exited);
    await worker.terminate();
  }

  #gone(port: MessagePort): void {
    this.#worker = undefined;
    port.close();
    this.#reading?.done(undefined);
    this.#setUp(false);
  }

  #setUp(up: boolean): void {
    if (up === this.#up) return;
    this.#up = up;
    this.#owner.onChange(this);
  }

  #restart(error: Error): void {
    this.#owner.onWorkerError(error);
    const wentWell = clockMs() - this.#upSinceMs > workerRestartMs.max;
    this.#pauseMs = wentWell
      ? 0
      : Math.min(workerRestartMs.max, Math.max(workerRestartMs.first, 2 * this.#pauseMs));
    this.#timer = setTimeout(() => {
      ++this.restarts;
      this.start().catch((again: Error) => {
        if (!this.#ending) this.#restart(again);
      });
    }, this.#pauseMs);
  }
}
