/**
 * The worker's side of serveWorkers(). It passes the connections that the main thread has accepted to a
 * server.
 */
import { isMainThread, MessagePort, workerData } from 'node:worker_threads';
import { promiseOf, textOf } from '../core/foreign.ts';
import { checkedOptions, type OptionRules } from '../core/options.ts';
import { inRoot } from '../core/scopes.ts';
import { processWarning } from '../core/warnings.ts';
import { rpcServer } from '../server/server.ts';
import type { Server } from '../server/server-type.ts';
import { workerDrainedMs } from './limits.ts';
import {
  handoverVersion,
  otherHandover,
  portKey,
  type ToMain,
  type ToWorker,
  versionKey,
} from './messages.ts';
import { PortDuplex } from './port-duplex.ts';

/** Options of listenInWorker(). */
export interface WorkerOptions {
  /**
   * Runs in this worker when it has drained: its server has been shut down, and no call is in progress any
   * more. The thread ends when the returned promise is settled, after 5,000 ms at the latest. Exceptions and
   * rejections of the function become process warnings.
   */
  onDrained?: () => unknown;
  /**
   * A registry of prom-client with the metrics of this worker. `workersRegistry(group)` of
   * `rdma-rpc/prometheus` adds up the registries of all workers. Default: none.
   */
  registry?: MetricsRegistry;
}

/** The part of prom-client's Registry that this package uses. */
export interface MetricsRegistry {
  getMetricsAsJSON(): Promise<readonly object[]>;
}

const rules: OptionRules = {
  onDrained: { kind: 'function' },
  registry: { kind: 'source' },
};

function controlPort(): MessagePort {
  const given = isMainThread ? null : (workerData as Record<string, unknown> | null);
  const port = given?.[portKey];
  if (port instanceof MessagePort) {
    const why = otherHandover(given?.[versionKey], handoverVersion);
    if (why !== '') throw new Error(`listenInWorker: ${why}`);
    return port;
  }
  throw new Error(
    'listenInWorker: this thread was not started by serveWorkers(); use server.listen(address)',
  );
}

/**
 * Replaces `server.listen(address)` in a worker that serveWorkers() has started. The main thread hands
 * connections over to the worker, and tells it when to shut down. A worker that shuts its server down by
 * itself is replaced. Throws in any other thread, for unknown options, and when no fabric can be opened.
 */
export function listenInWorker(given: Server, options: WorkerOptions = {}): void {
  const { onDrained, registry } = checkedOptions<WorkerOptions>('listenInWorker', options, rules);
  if (registry !== undefined && typeof registry.getMetricsAsJSON !== 'function')
    throw new TypeError('listenInWorker: registry: takes a Registry of prom-client');
  const port = controlPort();
  const server = rpcServer('listenInWorker', given);
  if (server.hasTls) {
    throw new Error(
      'listenInWorker: the connections of workers are accepted by serveWorkers(): give the option tls to that',
    );
  }
  server.open();
  const send = (message: ToMain): void => port.postMessage(message);
  port.on('message', (message: ToWorker) => {
    if (message.type === 'shutdown') void server.shutdown({ graceMs: message.graceMs });
    else if (message.type === 'ask') send({ type: 'here' });
    else if (message.type === 'metrics') void sendMetrics(send, registry);
    else server.accept(new PortDuplex(message.port, message.from), message.peer);
  });
  // This listener runs when either side has started the shutdown.
  server.onShutdown(() => {
    send({ type: 'stopping' });
    // After the port is closed, nothing of this library keeps the thread alive.
    void server
      .shutdown()
      .then(() => {
        send({ type: 'drained' });
        return onDrained && drained(onDrained);
      })
      .finally(() => port.close());
  });
  send({ type: 'ready', version: handoverVersion });
}

/**
 * Sends the worker's metrics to the main thread. Never rejects, although the application's registry may throw
 * or return values that cannot be sent to a thread.
 */
async function sendMetrics(
  send: (message: ToMain) => void,
  registry: MetricsRegistry | undefined,
): Promise<void> {
  try {
    send({ type: 'metrics', metrics: await inRoot(() => registry?.getMetricsAsJSON()) });
  } catch (error) {
    processWarning(`listenInWorker: the metrics of this worker cannot be read: ${textOf(error)}`);
    send({ type: 'metrics', metrics: undefined });
  }
}

/**
 * Resolves when the function of the application is done, or when its time limit has passed. Never rejects.
 */
function drained(onDrained: () => unknown): Promise<void> {
  return new Promise((resolve) => {
    const failed = (error: unknown): void =>
      processWarning(`listenInWorker: the function \`onDrained\` has failed: ${textOf(error)}`);
    const late = setTimeout(() => {
      processWarning(
        `listenInWorker: \`onDrained\` has taken ${workerDrainedMs} ms: the worker ends without it`,
      );
      resolve();
    }, workerDrainedMs);
    const done = (): void => {
      clearTimeout(late);
      resolve();
    };
    try {
      const result = promiseOf(inRoot(onDrained));
      if (result === undefined) done();
      else result.catch(failed).finally(done);
    } catch (error) {
      failed(error);
      done();
    }
  });
}
