/** What `serveWorkers` refuses, and the reason that it gives; a worker that never listens is one of them. */
import { createServer } from 'node:net';
import { pathToFileURL } from 'node:url';
import { createServer as createRpcServer } from 'rdma-rpc';
import { listenInWorker, serveWorkers, type WorkerGroup, type WorkersOptions } from 'rdma-rpc/workers';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { workerStartTimeoutMs } from '../../../runtime/workers/limits.ts';
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

  test('a file that is no URL', async () => {
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

  test('a worker that never listens, when its time is over', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const started = caught(start({ workers: 1, workerData: { mode: 'silent' } }));
    vi.advanceTimersByTime(workerStartTimeoutMs);
    expect(await started).toMatchObject({
      message: expect.stringMatching(/no listenInWorker\(\) within 30000 ms/),
    });
  });
});

test('listenInWorker is for workers of a group only', () => {
  expect(() => listenInWorker(createRpcServer())).toThrow(/was not started by serveWorkers/);
});
