/**
 * Tests a worker group's reports about its workers: that a worker has drained, and the metrics of all
 * workers.
 */
import { pathToFileURL } from 'node:url';
import { Registry } from 'prom-client';
import { type Channel, createChannel, createClient, createServer } from 'rdma-rpc';
import { workersRegistry } from 'rdma-rpc/prometheus';
import { listenInWorker, serveWorkers, type WorkerGroup, type WorkersOptions } from 'rdma-rpc/workers';
import { afterEach, describe, expect, test } from 'vitest';
import { until } from '../../outcomes.ts';
import { EchoDefinition } from '../gen/echo.rdma.ts';
import { compiled } from './processes.ts';

const file = pathToFileURL(compiled('group-worker'));
let groups: WorkerGroup[] = [];
let channels: Channel[] = [];
afterEach(async () => {
  for (const channel of channels) await channel.close();
  for (const group of groups) await group.shutdown({ graceMs: 0 });
  groups = [];
  channels = [];
});

async function start(options: Partial<WorkersOptions> = {}): Promise<WorkerGroup> {
  const group = await serveWorkers(file, { address: '127.0.0.1:0', workers: 2, ...options });
  groups.push(group);
  return group;
}
function reach({ address }: WorkerGroup) {
  const channel = createChannel(address);
  channels.push(channel);
  return createClient(EchoDefinition, channel);
}
const words = () => new Int32Array(new SharedArrayBuffer(8));

describe('onDrained', () => {
  test('is called in each worker when its last call is over, and the thread waits for it', async () => {
    const [drained, gate] = [words(), words()];
    const group = await start({ workerData: { drained, gate, drains: 'slowly' } });
    const underWay = reach(group).behave({ text: 'wait at the gate' });
    await until(() => Atomics.load(gate, 0) === 1);
    const ended = group.shutdown({ graceMs: 60_000 });
    // The other worker has no call.
    await until(() => Atomics.load(drained, 0) === 1);
    Atomics.store(gate, 1, 1);
    await underWay;
    await ended;
    expect([...drained]).toEqual([2, 2]);
  });

  test('sees no store of the code that called listenInWorker', async () => {
    const drained = words();
    const group = await start({ workers: 1, workerData: { drained, drains: 'without a store' } });
    await group.shutdown();
    expect([...drained]).toEqual([1, 1]);
  });

  test('ends the worker even when it fails', async () => {
    const drained = words();
    const group = await start({ workerData: { drained, drains: 'by an error' } });
    await group.shutdown();
    expect([...drained]).toEqual([2, 0]);
  });

  test('delays the shutdown only up to its limit when it never ends', { timeout: 30_000 }, async () => {
    const drained = words();
    const group = await start({ workers: 1, workerData: { drained, drains: 'for ever' } });
    await group.shutdown();
    expect([...drained]).toEqual([1, 0]);
  });

  test('is also called in a worker that shuts its server down by itself', async () => {
    const drained = words();
    const group = await start({ workers: 1, workerData: { drained }, onWorkerError: () => undefined });
    await reach(group).behave({ text: 'shut down' });
    await until(() => Atomics.load(drained, 1) === 1);
  });
});

describe('metrics', () => {
  const name = 'rdma_rpc_server_handled_total{service="test.echo.Echo",method="Echo",type="unary",code="OK"}';
  async function counted(group: WorkerGroup): Promise<string | undefined> {
    const text = await (await workersRegistry(group, new Registry())).metrics();
    return text.split('\n').find((line) => line.startsWith(name));
  }

  test('of all workers are summed, and a worker that crashes does not lower the sums', async () => {
    const group = await start({ onWorkerError: () => undefined });
    const clients = [reach(group), reach(group)];
    for (const client of clients) for (let call = 0; call < 5; ++call) await client.echo({});
    expect(group.workers.map(({ connections }) => connections)).toEqual([1, 1]);
    expect(await counted(group)).toBe(`${name} 10`);
    await clients[0]!.behave({ text: 'crash' }).catch(() => undefined);
    await until(() => group.workers.every(({ up, restarts }) => up || restarts > 0));
    expect(await counted(group)).toBe(`${name} 10`);
    await until(() => group.workers.every(({ up }) => up));
    await clients[0]!.echo({});
    expect(await counted(group)).toBe(`${name} 11`);
  });

  test('of a worker whose thread is busy are its last ones', async () => {
    const gate = words();
    const group = await start({ workers: 1, workerData: { gate } });
    const client = reach(group);
    await client.echo({});
    expect(await counted(group)).toBe(`${name} 1`);
    const busy = client.behave({ text: 'block' });
    await until(() => Atomics.load(gate, 0) === 1);
    expect(await group.metrics()).toEqual([]);
    expect(await counted(group)).toBe(`${name} 1`);
    Atomics.store(gate, 1, 1);
    Atomics.notify(gate, 1);
    await busy;
  });
});

test.each<[string, object, RegExp]>([
  ['a name that does not exist', { onDrain: () => undefined }, /onDrain.*onDrained/],
  ['a value that is not a function', { onDrained: 5 }, /onDrained: must be a function/],
  ['a value that is not a registry', { registry: {} }, /takes a Registry of prom-client/],
])('listenInWorker refuses %s', (_, options, says) => {
  expect(() => listenInWorker(createServer(), options as never)).toThrow(says);
});
