/**
 * Runs as a worker of a group. The worker serves the Echo service in the way that `workerData.mode` names.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { threadId, workerData } from 'node:worker_threads';
import { Registry } from 'prom-client';
import { createServer, type HandlerContext, type Server } from 'rdma-rpc';
import { prometheus } from 'rdma-rpc/prometheus';
import { type Peers, peersOf } from 'rdma-rpc/reverse';
import { listenInWorker } from 'rdma-rpc/workers';
import { EchoDefinition, type EchoMessage } from '../gen/echo.rdma.ts';

interface Given {
  readonly mode?: 'throws' | 'silent' | 'ends';
  /** Word 0 counts the calls that wait; the parent sets word 1 to 1 to release them. */
  readonly gate?: Int32Array;
  /** Word 0 counts the calls of `onDrained` that have begun, and word 1 those that have ended. */
  readonly drained?: Int32Array;
  /** The behaviour of `onDrained`. */
  readonly drains?: 'slowly' | 'for ever' | 'by an error' | 'without a store';
}
const { mode, gate, drained, drains } = workerData as Given;

const user = new AsyncLocalStorage<string>();
let server: Server | undefined;
let peers: Peers | undefined;
const behaviours: Readonly<
  Record<string, (request: EchoMessage, context: HandlerContext) => Promise<object> | object>
> = {
  thread: () => ({ number: threadId }),
  peer: (_, { peer }) => ({ text: `${peer.identity} ${peer.uid} ${peer.certificate?.fingerprint256}` }),
  'call back': ({ payload }, context) =>
    peers!.client(EchoDefinition, context).echo({ payload }, { context }),
  crash: () => {
    setImmediate(() => {
      throw new Error('as planned');
    });
    return new Promise(() => undefined);
  },
  'wait at the gate': async () => {
    Atomics.add(gate!, 0, 1);
    while (Atomics.load(gate!, 1) === 0) await new Promise((resolve) => setImmediate(resolve));
    return { number: threadId };
  },
  /** Blocks the whole thread, as a long computation does. */
  block: () => {
    Atomics.add(gate!, 0, 1);
    Atomics.wait(gate!, 1, 0);
    return { number: threadId };
  },
  'shut down': () => {
    setImmediate(() => void server?.shutdown());
    // Keeps the thread alive for ever.
    setInterval(() => undefined, 1000);
    return {};
  },
  hang: () => {
    Atomics.add(gate!, 0, 1);
    // Keeps the thread alive for ever.
    setInterval(() => undefined, 1000);
    return new Promise(() => undefined);
  },
};

if (mode === 'throws') throw new Error('no database');
if (mode === 'silent') setInterval(() => undefined, 1000);
if (mode === undefined) {
  const registry = new Registry();
  server = createServer().use(prometheus({ registry }));
  peers = peersOf(server);
  server.add(EchoDefinition, {
    echo: (request) => request,
    behave: (request, context) => behaviours[request.text]!(request, context),
  });
  const onDrained = async () => {
    Atomics.add(drained!, 0, 1);
    if (drains === 'without a store' && user.getStore() !== undefined) return;
    if (drains === 'by an error') throw new Error('no disk');
    if (drains === 'for ever') await new Promise(() => undefined);
    // The wait is longer than the time after which an idle thread is ended.
    if (drains === 'slowly') await new Promise((resolve) => setTimeout(resolve, 2_500));
    Atomics.add(drained!, 1, 1);
  };
  const options = drained === undefined ? { registry } : { registry, onDrained };
  user.run('alice', () => listenInWorker(server!, options));
}
