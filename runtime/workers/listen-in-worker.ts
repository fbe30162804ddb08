/** The worker's side of serveWorkers(): gives a server the connections that the main thread has accepted. */
import { isMainThread, MessagePort, workerData } from 'node:worker_threads';
import { rpcServer } from '../server/server.ts';
import type { Server } from '../server/server-type.ts';
import { portKey, type ToMain, type ToWorker } from './messages.ts';
import { PortDuplex } from './port-duplex.ts';

function controlPort(): MessagePort {
  const port: unknown = isMainThread ? undefined : (workerData as Record<string, unknown> | null)?.[portKey];
  if (port instanceof MessagePort) return port;
  throw new Error(
    'listenInWorker: this thread was not started by serveWorkers(); use server.listen(address)',
  );
}

/**
 * Replaces `server.listen(address)` in a worker that serveWorkers() has started: the main thread hands over
 * connections, and tells the worker when to shut down. A worker that shuts its server down by itself is
 * replaced. Throws in any other thread, and when no fabric can be opened.
 */
export function listenInWorker(given: Server): void {
  const port = controlPort();
  const server = rpcServer('listenInWorker', given);
  if (server.hasTls) {
    throw new Error(
      'listenInWorker: the connections of workers are accepted by serveWorkers(): give the option tls to that',
    );
  }
  server.open();
  port.on('message', (message: ToWorker) => {
    if (message.type === 'shutdown') void server.shutdown({ graceMs: message.graceMs });
    else if (message.type === 'ask') port.postMessage({ type: 'here' } satisfies ToMain);
    else server.accept(new PortDuplex(message.port, message.from), message.peer);
  });
  // Runs whichever side started the shutdown.
  server.onShutdown(() => {
    port.postMessage({ type: 'stopping' } satisfies ToMain);
    // Without the port, nothing of this library keeps the thread alive.
    void server.shutdown().finally(() => port.close());
  });
  port.postMessage({ type: 'ready' } satisfies ToMain);
}
