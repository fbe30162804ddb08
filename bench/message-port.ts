/**
 * The same calls between two threads of one process by `MessagePort`, as an application would write them.
 * They have no codec, because V8 clones the values. All messages of an event-loop iteration are sent in one
 * post, because each post costs some microseconds. The client process starts the thread; the server's process
 * has nothing to do.
 */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isMainThread, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads';
import { handlers } from './handlers.ts';
import type { BenchClient, Msg, Peer } from './peer.ts';

const role = 'message-port server';

type Kind = 'echo' | 'put';
interface Call {
  readonly call: number;
  readonly kind: Kind;
  readonly message: Msg;
}
type Answer = Omit<Call, 'kind'>;

/** Posts at once all messages that one iteration of the event loop has sent. */
class Batches<T> {
  #batch: T[] = [];
  readonly #port: Pick<MessagePort, 'postMessage'>;

  constructor(port: Pick<MessagePort, 'postMessage'>) {
    this.#port = port;
  }

  send(one: T): void {
    // This runs after the reactions of all settled promises, any of which may have sent a message.
    if (this.#batch.push(one) === 1) process.nextTick(() => this.#post());
  }

  #post(): void {
    const batch = this.#batch;
    this.#batch = [];
    this.#port.postMessage(batch);
  }
}

function serveThread(port: MessagePort): void {
  const answers = new Batches<Answer>(port);
  port.on('message', (calls: Call[]) => {
    for (const { call, kind, message } of calls)
      handlers[kind](message).then((answer) => answers.send({ call, message: answer }));
  });
  port.postMessage([]);
}

async function connect(): Promise<BenchClient> {
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: role });
  await once(worker, 'message');
  const calls = new Batches<Call>(worker);
  const waiting = new Map<number, (message: Msg) => void>();
  let last = 0;
  worker.on('message', (answers: Answer[]) => {
    for (const { call, message } of answers) {
      waiting.get(call)!(message);
      waiting.delete(call);
    }
  });
  const caller = (kind: Kind) => (message: Msg) =>
    new Promise<Msg>((resolve) => {
      waiting.set(++last, resolve);
      calls.send({ call: last, kind, message });
    });
  return {
    buffer: (_worker, bytes) => new Uint8Array(bytes),
    echo: caller('echo'),
    put: caller('put'),
    async close() {
      await worker.terminate();
    },
  };
}

export const messagePort: Peer = {
  name: 'MessagePort',
  fabric: 'threads',
  threads: true,
  serve: async () => ({ close: async () => {} }),
  connect,
};

if (!isMainThread && workerData === role) serveThread(parentPort!);
