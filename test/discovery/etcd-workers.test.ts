/**
 * Tests a worker group in a real etcd. One registration stands for all of its workers, and the registration
 * is removed before the workers drain.
 */
import { pathToFileURL } from 'node:url';
import { type Channel, createChannel, createClient } from 'rdma-rpc';
import { etcd, type Registration, register } from 'rdma-rpc/etcd';
import { serveWorkers, type WorkerGroup } from 'rdma-rpc/workers';
import { beforeEach, expect, test } from 'vitest';
import { needs } from '../needs.ts';
import { until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { compiled } from '../runtime/process/processes.ts';
import { afterwards, channelTo, known, sorted } from './bed.ts';
import { EtcdServer } from './etcd-server.ts';

needs('etcd');

const file = pathToFileURL(compiled('group-worker'));
const service = 'shop/greeter';
let server: EtcdServer;
beforeEach(async () => {
  server = await EtcdServer.start();
  afterwards(() => server.remove());
});

const resolver = () => etcd({ endpoints: server.url, service });
const listed = async (): Promise<string[]> =>
  (await resolver().resolve(AbortSignal.timeout(5000))).map((each) => (each as { address: string }).address);

/** This time is within the time limit of the test. */
async function eventually(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition()));
}

async function registered(serving = () => true): Promise<{ group: WorkerGroup; registration: Registration }> {
  const group = await serveWorkers(file, {
    address: '127.0.0.1:0',
    workers: 2,
    onWorkerError: () => undefined,
  });
  afterwards(() => group.shutdown({ graceMs: 0 }));
  const health = { statusOf: () => (serving() ? ('SERVING' as const) : ('NOT_SERVING' as const)) };
  const { address } = group;
  const registration = register(group, { endpoints: server.url, service, address, ttlMs: 2000, health });
  await registration.ready();
  return { group, registration };
}

/** Returns the thread that answers over a new channel. */
async function threadOf(channel: Channel): Promise<number> {
  const client = createClient(EchoDefinition, channel);
  return (await client.behave({ text: 'thread' }, { waitForReady: true })).number!;
}

test('a group is one server, whose workers all get calls', async () => {
  const { group } = await registered();
  expect(await listed()).toEqual([group.address]);
  // The system chooses the worker of each connection, so two connections may go to the same worker.
  const seen = new Set<number>();
  await eventually(async () => {
    const { channel } = channelTo(resolver());
    seen.add(await threadOf(channel));
    expect(known(channel)).toBe(group.address);
    return seen.size === 2;
  });
});

test('a worker that crashes leaves the group registered', async () => {
  const { group, registration } = await registered();
  const crash = createChannel(group.address);
  afterwards(() => crash.close());
  await createClient(EchoDefinition, crash)
    .behave({ text: 'crash' })
    .catch(() => undefined);
  await until(() => group.workers.some(({ restarts }) => restarts === 1));
  expect(registration.registered).toBe(true);
  expect(await listed()).toEqual([group.address]);
});

test('the shutdown of a group takes it out of the list before its workers drain, and no call fails', async () => {
  const a = await registered();
  const b = await registered();
  const { channel } = channelTo(resolver());
  // A channel connects when it is asked to.
  await channel.ready();
  await until(() => known(channel) === sorted(a.group.address, b.group.address));
  await until(() => channel.addresses.every(({ state }) => state === 'ready'));
  const client = createClient(EchoDefinition, channel);
  let failed = 0;
  let over = false;
  const load = (async () => {
    while (!over) await client.echo({}, { waitForReady: true }).catch(() => ++failed);
  })();
  const seen: unknown[] = [];
  // The server awaits this listener like the registration's own listener, so the group still serves.
  a.group.onShutdown(async () => {
    await until(() => !a.registration.registered);
    seen.push(
      a.group.workers.every(({ up }) => up),
      await listed(),
    );
  });
  await a.group.shutdown();
  await until(() => known(channel) === b.group.address);
  over = true;
  await load;
  expect(seen).toEqual([true, [b.group.address]]);
  expect(failed).toBe(0);
});

test('a group that is not healthy leaves the list, and comes back', async () => {
  let serving = true;
  const a = await registered(() => serving);
  serving = false;
  await eventually(async () => (await listed()).length === 0);
  serving = true;
  await eventually(async () => (await listed()).length === 1);
  expect(a.group.workers.every(({ up }) => up)).toBe(true);
});
