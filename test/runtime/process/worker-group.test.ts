/** Several worker threads behind one address: all serve, one that crashes comes back, all of them end. */
import { createServer } from 'node:net';
import { pathToFileURL } from 'node:url';
import {
  type Channel,
  createChannel,
  createClient,
  createServer as createRpcServer,
  leaseOf,
  listenInWorker,
  type RpcError,
  Status,
  serveWorkers,
  type WorkerGroup,
  type WorkersOptions,
} from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { workerStartTimeoutMs } from '../../../runtime/limits.ts';
import { EchoDefinition } from '../gen/echo.rdma.ts';
import { compiled } from './processes.ts';

const file = pathToFileURL(compiled('group-worker'));
let groups: WorkerGroup[] = [];
let channels: Channel[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const channel of channels) await channel.close();
  for (const group of groups) await group.shutdown({ graceMs: 0 });
  groups = [];
  channels = [];
});

async function start(options: Partial<WorkersOptions> = {}): Promise<WorkerGroup> {
  const group = await serveWorkers(file, { address: '127.0.0.1:0', workers: 3, ...options });
  groups.push(group);
  return group;
}
function reach({ address }: WorkerGroup) {
  const channel = createChannel(address);
  channels.push(channel);
  return { channel, client: createClient(EchoDefinition, channel) };
}
const caught = (promise: Promise<unknown>): Promise<RpcError> =>
  promise.then(
    () => Promise.reject(new Error('the call was answered')),
    (error: RpcError) => error,
  );
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
const newGate = () => new Int32Array(new SharedArrayBuffer(8));

describe('a group of three workers', () => {
  test('serves with all of them, each as many connections as the others, messages of all sizes', async () => {
    const group = await start();
    const threads = new Map<number, number>();
    for (let i = 0; i < 9; ++i) {
      const { client } = reach(group);
      const { number } = await client.behave({ text: 'thread' });
      threads.set(number, (threads.get(number) ?? 0) + 1);
      const answer = await client.echo({ payload: new Uint8Array(300_000).fill(i) });
      expect(answer.payload.every((byte) => byte === i)).toBe(true);
      leaseOf(answer)?.release();
    }
    expect([...threads.values()]).toEqual([3, 3, 3]);
    expect(group.workers.map(({ up, connections }) => ({ up, connections }))).toEqual(
      Array(3).fill({ up: true, connections: 3 }),
    );
    for (const channel of channels) await channel.close();
    await until(() => group.workers.every(({ connections }) => connections === 0));
  });

  test('on a unix socket too, and a client that was closed makes room on its worker', async () => {
    const group = await start({
      address: `unix:${process.cwd()}/build/group-${process.pid}.sock`,
      workers: 2,
    });
    const first = reach(group);
    await first.channel.ready();
    await reach(group).channel.ready();
    await first.channel.close();
    await until(() => group.workers.some(({ connections }) => connections === 0));
    await reach(group).channel.ready();
    expect(group.workers.map(({ connections }) => connections)).toEqual([1, 1]);
  });

  test('loses the connections of one that crashes, no others; it is started again', async () => {
    const errors: Error[] = [];
    const group = await start({ onWorkerError: (error) => void errors.push(error) });
    const clients = [1, 2, 3].map(() => reach(group));
    const threads = await Promise.all(
      clients.map(async ({ client }) => (await client.behave({ text: 'thread' })).number),
    );
    expect(new Set(threads).size).toBe(3);
    const error = await caught(clients[0]!.client.behave({ text: 'crash' }));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, sent: 'maybe' });
    for (const { client, channel } of clients.slice(1)) {
      expect(channel.state).toBe('ready');
      expect((await client.echo({ number: 1 })).number).toBe(1);
    }
    await until(() => errors.length > 0 && group.workers.every(({ up }) => up));
    expect(errors.map(({ message }) => message)).toEqual(['as planned']);
    expect(group.workers.map(({ restarts }) => restarts).sort()).toEqual([0, 0, 1]);
    expect(threads).not.toContain((await clients[0]!.client.behave({ text: 'thread' })).number);
  });

  test('replaces a worker that has shut its server down by itself, and gives it no connection meanwhile', async () => {
    const group = await start({ workers: 2, onWorkerError: () => undefined });
    const first = reach(group);
    const { number } = await first.client.behave({ text: 'thread' });
    await first.client.behave({ text: 'shut down' });
    await until(() => group.workers.filter(({ up }) => up).length === 1);
    for (let i = 0; i < 4; ++i)
      expect((await reach(group).client.behave({ text: 'thread' })).number).not.toBe(number);
    await until(() => group.workers.every(({ up }) => up));
    expect(group.workers.map(({ restarts }) => restarts).sort()).toEqual([0, 1]);
  });

  test('drains: calls under way are answered, then every thread ends', async () => {
    const gate = newGate();
    const group = await start({ workerData: { gate } });
    const calls = [1, 2, 3].map(() => reach(group).client.behave({ text: 'wait at the gate' }));
    await until(() => Atomics.load(gate, 0) === 3);
    const ended = group.shutdown({ graceMs: 60_000 });
    Atomics.store(gate, 1, 1);
    const threads = (await Promise.all(calls)).map(({ number }) => number);
    expect(new Set(threads).size).toBe(3);
    await ended;
    expect(group.workers.map(({ threadId }) => threadId)).toEqual([-1, -1, -1]);
    await expect(reach(group).channel.ready()).rejects.toMatchObject({ code: Status.UNAVAILABLE });
  });

  test('ends although a handler never does', async () => {
    const gate = newGate();
    const group = await start({ workerData: { gate } });
    const hanging = caught(reach(group).client.behave({ text: 'hang' }));
    await until(() => Atomics.load(gate, 0) === 1);
    await group.shutdown({ graceMs: 10 });
    expect(await hanging).toMatchObject({ code: Status.UNAVAILABLE, sent: 'maybe' });
  });
});

describe('serveWorkers rejects', () => {
  test.each<[string, Partial<WorkersOptions>, RegExp]>([
    ['when a worker throws before it listens', { workerData: { mode: 'throws' } }, /no database/],
    ['when a worker ends before it listens', { workerData: { mode: 'ends' } }, /ended with code 0/],
    ['an unknown option', { worker: 3 } as object, /did you mean workers/],
    ['a number of workers out of range', { workers: 0 }, /workers: 0 is not an integer from 1 to 256/],
    ['workerData that is no object', { workerData: 5 as never }, /workerData must be an object/],
    ['a bad address', { address: 'nowhere' }, /not understood/],
  ])('%s', async (_, options, reason) => {
    await expect(start(options)).rejects.toThrow(reason);
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
