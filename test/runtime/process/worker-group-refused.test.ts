/** Tests arguments that `serveWorkers` refuses with the reason, such as a worker that never listens. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { pathToFileURL } from 'node:url';
import { MessageChannel, Worker } from 'node:worker_threads';
import { createServer as createRpcServer } from 'rdma-rpc';
import { listenInWorker, serveWorkers, type WorkerGroup, type WorkersOptions } from 'rdma-rpc/workers';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { workerStartTimeoutMs } from '../../../runtime/workers/limits.ts';
import { portKey, versionKey } from '../../../runtime/workers/messages.ts';
import { caught } from '../../outcomes.ts';
import { compiled } from './processes.ts';

const file = pathToFileURL(compiled('group-worker'));
afterEach(() => vi.useRealTimers());

const start = (options: Partial<WorkersOptions>): Promise<WorkerGroup> =>
  serveWorkers(file, { address: '127.0.0.1:0', workers: 3, ...options });

describe('serveWorkers rejects', () => {
  test.each<[string, Partial<WorkersOptions>, RegExp]>([
    ['when a worker throws before it listens', { workerData: { mode: 'throws' } }, /no database/],
    ['when a worker ends before it listens', { workerData: { mode: 'ends' } }, /ended with code 0/],
    ['an unknown option', { worker: 3 } as object, /did you mean workers/],
    ['a number of workers out of range', { workers: 0 }, /workers: 0 is not an integer from 1 to 256/],
    ['workerData that is no object', { workerData: 5 as never }, /workerData must be an object/],
    ['a bad address', { address: 'nowhere' }, /^serveWorkers: address "nowhere": not understood/],
    [
      'no address',
      { address: undefined as never },
      /^serveWorkers: address undefined: not a string; use 'host/,
    ],
    [
      'an option of the servers in the workers',
      { allow: { uid: 0 } } as object,
      /^serveWorkers: allow is an option of the server in each worker: createServer\(\{ allow: … \}\)/,
    ],
  ])('%s', async (_, options, reason) => {
    await expect(start(options)).rejects.toThrow(reason);
  });

  test('a file that is not a URL', async () => {
    await expect(serveWorkers('./worker.js', { address: '127.0.0.1:0' })).rejects.toThrow(
      /serveWorkers: file: ".\/worker.js" is no URL; give new URL/,
    );
  });

  test('an address in use', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    await expect(start({ address: `127.0.0.1:${port}` })).rejects.toThrow(/EADDRINUSE/);
    other.close();
  });

  test('a worker that never listens, after the time limit', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const started = caught(start({ workers: 1, workerData: { mode: 'silent' } }));
    vi.advanceTimersByTime(workerStartTimeoutMs);
    expect(await started).toMatchObject({
      message: expect.stringMatching(/no listenInWorker\(\) within 30000 ms/),
    });
  });
});

/** Makes a worker file that imports its own installation of the package. */
describe('a worker with another version of the handover', () => {
  /** This worker talks to the main thread without the package. */
  const script = (ready: object): URL =>
    new URL(
      `data:text/javascript,${encodeURIComponent(`
        import { workerData } from 'node:worker_threads';
        const port = workerData.${portKey};
        port.on('message', ({ type }) => type === 'shutdown' && port.close());
        port.postMessage(${JSON.stringify({ type: 'ready', ...ready })});
      `)}`,
    );

  test('is refused by the main thread, with both versions', async () => {
    const started = serveWorkers(script({ version: 2 }), { address: '127.0.0.1:0', workers: 1 });
    await expect(started).rejects.toThrow(
      /hands connections over in version 1, and the worker takes them in version 2; let both import the same installation/,
    );
  });

  test('is refused when it names no version, as builds before 0.1.0 do', async () => {
    const started = serveWorkers(script({}), { address: '127.0.0.1:0', workers: 1 });
    await expect(started).rejects.toThrow(/in version 1, and the worker takes them in version 0;/);
  });

  test('serves when its version is the same', async () => {
    const group = await serveWorkers(script({ version: 1 }), { address: '127.0.0.1:0', workers: 1 });
    expect(group.workers).toMatchObject([{ up: true }]);
    await group.shutdown();
  });

  test('refuses the main thread in turn', async () => {
    const { port1, port2 } = new MessageChannel();
    const worker = new Worker(file, {
      workerData: { [portKey]: port2, [versionKey]: 2 },
      transferList: [port2],
    });
    const [error] = (await once(worker, 'error')) as [Error];
    port1.close();
    expect(error.message).toMatch(
      /^listenInWorker: serveWorkers\(\) hands connections over in version 2, and the worker takes them in version 1;/,
    );
  });
});

test('listenInWorker works only in workers of a group', () => {
  expect(() => listenInWorker(createRpcServer())).toThrow(/was not started by serveWorkers/);
});
