/**
 * Tests which worker of a group gets a new connection. The tests use simulated workers, which answer when the
 * test tells them to, on a virtual clock.
 */
import { Duplex } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { workerAnswerMs, workerWaiting, workerWaitMs } from '../../runtime/workers/limits.ts';
import { type Place, Unplaced } from '../../runtime/workers/unplaced.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

class Worker implements Place {
  up = true;
  connections = 0;
  /** Number of questions that the worker has not answered. */
  asked = 0;
  busy = false;
  readonly name: string;
  readonly #took: string[];
  of: Unplaced | undefined;

  constructor(name: string, took: string[]) {
    this.name = name;
    this.#took = took;
  }
  ask(): void {
    ++this.asked;
    if (!this.busy) queueMicrotask(() => this.answer());
  }
  answer(): void {
    for (; this.asked > 0; --this.asked) this.of!.here(this);
  }
  take(_: unknown, peer: string): void {
    ++this.connections;
    this.#took.push(`${peer}${this.name}`);
  }
}

function bed(names = 'abc') {
  const took: string[] = [];
  const workers = [...names].map((name) => new Worker(name, took));
  const unplaced = new Unplaced(workers);
  for (const worker of workers) worker.of = unplaced;
  const refused: string[] = [];
  let number = 0;
  const connect = (): Duplex => {
    const socket = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _, done) => {
        refused.push(chunk.toString('latin1'));
        done();
      },
    });
    unplaced.add(socket as never, String(++number));
    return socket;
  };
  return { took, workers, unplaced, refused, connect };
}
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test('workers that answer get the same number of connections, even when many arrive at once', async () => {
  const { connect, workers, unplaced } = bed();
  for (let i = 0; i < 30; ++i) connect();
  await settled();
  for (let i = 0; i < 30; ++i) {
    connect();
    await settled();
  }
  expect(workers.map(({ connections }) => connections)).toEqual([20, 20, 20]);
  expect(unplaced.size).toBe(0);
});

test('a worker that does not answer is skipped, and gets connections again when it does', async () => {
  const { connect, workers, took } = bed('ab');
  const [a, b] = workers as [Worker, Worker];
  a.busy = true;
  b.connections = 10;
  connect();
  await settled();
  expect(took).toEqual([]);
  vi.advanceTimersByTime(workerAnswerMs);
  await settled();
  expect(took).toEqual(['1b']);
  // The worker is now known to be busy, so no connection waits for it.
  connect();
  await settled();
  expect(took).toEqual(['1b', '2b']);
  a.busy = false;
  a.answer();
  connect();
  await settled();
  expect(took).toEqual(['1b', '2b', '3a']);
});

test('when none answers, waiting connections are shared by those that answer first', async () => {
  const { connect, workers, took } = bed();
  for (const worker of workers) worker.busy = true;
  for (let i = 0; i < 6; ++i) connect();
  for (let i = 0; i < 3; ++i) vi.advanceTimersByTime(workerAnswerMs);
  await settled();
  expect(took).toEqual([]);
  for (let round = 0; round < 2; ++round)
    for (const worker of workers) {
      --worker.asked;
      worker.of!.here(worker);
    }
  expect(workers.map(({ connections }) => connections)).toEqual([2, 2, 2]);
  expect(new Set(took.map((each) => each[0]))).toEqual(new Set(['1', '2', '3', '4', '5', '6']));
});

test('no connection waits for ever, and their number is limited', async () => {
  const { connect, workers, unplaced, refused } = bed('a');
  workers[0]!.busy = true;
  const waiting = Array.from({ length: workerWaiting }, () => connect());
  expect(unplaced.size).toBe(workerWaiting);
  connect();
  await settled();
  expect(refused.join()).toMatch(/1024 connections wait/);
  // A few connections suffice from here on, because a thousand timers that a test moves take half a minute on
  // a busy machine.
  for (const socket of waiting.slice(3)) socket.destroy();
  await settled();
  expect(unplaced.size).toBe(3);
  vi.advanceTimersByTime(workerWaitMs);
  expect(unplaced.size).toBe(0);
  await settled();
  expect(refused.join()).toMatch(/no worker of this server has answered within 4000 ms/);
  // The late answer belongs to no connection.
  workers[0]!.answer();
  expect(workers[0]!.connections).toBe(0);
});

test('a connection that is lost while it waits is forgotten', async () => {
  const { connect, workers, unplaced } = bed('a');
  workers[0]!.busy = true;
  const socket = connect();
  socket.destroy(new Error('reset'));
  await settled();
  expect(unplaced.size).toBe(0);
  workers[0]!.answer();
  expect(workers[0]!.connections).toBe(0);
});

test('when a worker leaves, others get its waiting connections; without other workers they are refused', async () => {
  const { connect, workers, unplaced, took, refused } = bed('ab');
  const [a, b] = workers as [Worker, Worker];
  a.busy = true;
  b.connections = 10;
  connect();
  a.up = false;
  unplaced.changed(a);
  await settled();
  expect(took).toEqual(['1b']);
  b.busy = true;
  connect();
  b.up = false;
  unplaced.changed(b);
  connect();
  await settled();
  expect(unplaced.size).toBe(0);
  expect(refused.filter((text) => text.includes('no worker of this server is up'))).toHaveLength(2);
});

test('a worker that starts gets the waiting connections', async () => {
  const { connect, workers, unplaced, took } = bed('ab');
  const [a, b] = workers as [Worker, Worker];
  a.busy = true;
  b.up = false;
  connect();
  vi.advanceTimersByTime(workerAnswerMs);
  b.up = true;
  unplaced.changed(b);
  await settled();
  expect(took).toEqual(['1b']);
});

test('a worker that ends and is started again gets the connections offered to it before', async () => {
  const { connect, workers, unplaced, took } = bed('ab');
  const [a, b] = workers as [Worker, Worker];
  a.busy = true;
  b.busy = true;
  connect();
  connect();
  // Both workers have been asked about both connections.
  vi.advanceTimersByTime(workerAnswerMs);
  expect([a.asked, b.asked]).toEqual([1, 1]);
  a.up = false;
  a.asked = 0;
  unplaced.changed(a);
  a.up = true;
  a.busy = false;
  unplaced.changed(a);
  await settled();
  expect(took.sort()).toEqual(['1a', '2a']);
  // The other worker answers too late, and gets no connection twice.
  b.answer();
  expect([took.length, unplaced.size]).toEqual([2, 0]);
});
