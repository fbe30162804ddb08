/**
 * Runs one cell of the table of ends: a process that opens one thing and then ends in one way. The process or
 * a worker of it ends. This program is run as `node cell.js THING END PORT PATH`. The main thread prints how
 * a worker ended, as JSON. ends.test.ts and test/runtimes start it, from dist.
 */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { things } from './things.ts';

interface Given {
  readonly thing: string;
  readonly end: string;
  readonly port: string;
  readonly path: string;
}

/** The ways in which a thread ends itself. */
const ends: Readonly<Record<string, (finish: (() => unknown) | undefined) => unknown>> = {
  'by itself': (finish) => finish?.(),
  'process.exit': () => process.exit(7),
  'an uncaught error': () =>
    void setImmediate(() => {
      throw new Error('as planned');
    }),
  'a rejection': () => void Promise.reject(new Error('as planned')),
  'a signal': () => {
    process.kill(process.pid, 'SIGTERM');
    // Without this interval the process would end by itself before the signal arrives.
    setInterval(() => undefined, 1000);
  },
  'terminate()': () => {
    parentPort!.postMessage('terminate me');
    setInterval(() => undefined, 1000);
  },
};

async function run({ thing, end, port, path }: Given): Promise<void> {
  const finish = await things[thing]!({ port, path });
  await ends[end]!(finish);
}

if (isMainThread) {
  const [thing = '', end = '', port = '', path = ''] = process.argv.slice(2);
  if (end.startsWith('worker: ')) {
    const given: Given = { thing, end: end.slice('worker: '.length), port, path };
    const worker = new Worker(new URL(import.meta.url), { workerData: given });
    let error = '';
    worker.on('message', () => worker.terminate());
    worker.on('error', ({ message }) => {
      error = message;
    });
    worker.on('exit', (code) => console.log(JSON.stringify({ code, error })));
  } else {
    await run({ thing, end, port, path });
  }
} else {
  await run(workerData as Given);
}
