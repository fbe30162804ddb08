/**
 * Tests connections that open and close while calls are in progress: drain, loss, reconnect and close.
 * Afterwards no memory or object of a call is left.
 */
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import {
  allocBuffer,
  type Channel,
  type Client,
  createChannel,
  createClient,
  createInProcessChannel,
  createServer,
  leaseOf,
  type Server,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { caught, comes, turn, until } from '../outcomes.ts';
import { type EchoLog, echoHandlers } from './echo-service.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { socketPath } from './world.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

interface Pair {
  server: Server;
  channel: Channel;
  client: Client<typeof EchoDefinition>;
  log: EchoLog;
  address: string;
}

async function start(address = '127.0.0.1:0'): Promise<{ server: Server; log: EchoLog; address: string }> {
  const log: EchoLog = { started: 0, aborted: [] };
  const server = createServer().add(EchoDefinition, echoHandlers(log));
  const bound = await server.listen(address);
  open.push({ close: () => server.shutdown({ graceMs: 0 }) });
  return { server, log, address: bound };
}

async function pair(address?: string): Promise<Pair> {
  const started = await start(address);
  const channel = createChannel(started.address);
  open.push(channel);
  return { ...started, channel, client: createClient(EchoDefinition, channel) };
}

describe('shutdown', () => {
  test('lets calls under way finish, refuses new connections, and resolves', async () => {
    const { server, channel, client, address } = await pair();
    await client.echo({});
    const slow = client.fetch({ number: 5_000_000 });
    const calls = Array.from({ length: 50 }, (_, i) => client.echo({ number: i }));
    await Promise.all(calls.slice(0, 1));
    const ended = server.shutdown({ graceMs: 60_000 });
    expect((await slow).payload).toHaveLength(5_000_000);
    expect((await Promise.all(calls)).map((answer) => answer.number)).toEqual(
      Array.from({ length: 50 }, (_, i) => i),
    );
    await ended;
    expect(server.sessionCount).toBe(0);
    expect(await caught(client.echo({}))).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(channel.state).toBe('failing');
    await expect(createChannel(address).ready()).rejects.toMatchObject({ code: Status.UNAVAILABLE });
  });

  test('ends pending calls after the grace period: handlers are notified, callers get UNAVAILABLE', async () => {
    const { server, client, log } = await pair();
    await client.echo({});
    const hanging = caught(client.behave({ text: 'hang' }));
    await until(() => log.started === 2);
    await server.shutdown({ graceMs: 20 });
    expect(await hanging).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    expect(log.aborted).toEqual([Status.CANCELLED]);
  });

  test('runs once however often it is called, and listening afterwards is refused', async () => {
    const { server } = await pair();
    const first = server.shutdown();
    expect(server.shutdown({ graceMs: 1 })).toBe(first);
    await first;
    await expect(server.listen('127.0.0.1:0')).rejects.toThrow(/has been shut down/);
    expect(() => server.shutdown({ grace: 1 } as object)).toThrow(/did you mean graceMs/);
  });

  test('is not delayed by a connection in the middle of its handshake', async () => {
    const { server, address } = await pair();
    const [host, port] = address.split(':');
    const socket = connect(Number(port), host);
    await comes(new Promise((resolve) => socket.once('connect', resolve)), 'the connection');
    await server.shutdown({ graceMs: 60_000 });
    await comes(new Promise((resolve) => socket.resume().once('close', resolve)), 'its end');
  });
});

describe('reconnect', () => {
  test('the next call after a loss connects again; calls in flight fail once with processed: maybe', async () => {
    const path = `unix:${socketPath()}`;
    const first = await pair(path);
    const { client, channel } = first;
    await client.echo({});
    const hanging = caught(client.behave({ text: 'hang' }));
    await until(() => first.log.started === 2);
    await first.server.shutdown({ graceMs: 0 });
    expect(await hanging).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    await until(() => channel.state === 'idle');
    const second = await start(path);
    expect((await client.echo({ number: 9 })).number).toBe(9);
    expect(second.log.started).toBe(1);
  });

  test('the first calls share one connection attempt', async () => {
    const { server, client } = await pair();
    await Promise.all(Array.from({ length: 100 }, () => client.echo({})));
    expect(server.sessionCount).toBe(1);
  });

  test('ready() waits for a server that starts later', async () => {
    const path = socketPath();
    const channel = createChannel(`unix:${path}`);
    open.push(channel);
    await expect(channel.ready()).rejects.toMatchObject({ code: Status.UNAVAILABLE });
    const ready = channel.ready({ timeoutMs: 60_000 });
    await start(`unix:${path}`);
    await ready;
    expect(channel.state).toBe('ready');
  });

  test('ready() can be cancelled', async () => {
    const channel = createChannel(`unix:${socketPath()}`);
    open.push(channel);
    const controller = new AbortController();
    const ready = channel.ready({ timeoutMs: 60_000, signal: controller.signal });
    controller.abort();
    await expect(ready).rejects.toMatchObject({ code: Status.CANCELLED });
  });

  test('the socket file of a dead server is replaced, but not that of a live server', async () => {
    const path = socketPath();
    const first = await start(`unix:${path}`);
    const other = createServer();
    open.push({ close: () => other.shutdown({ graceMs: 0 }) });
    await expect(other.listen(`unix:${path}`)).rejects.toThrow(/EADDRINUSE/);
    await first.server.shutdown({ graceMs: 0 });
    rmSync(path, { force: true });
  });
});

describe('nothing is left', () => {
  const counters = (): object => {
    const { sessions, queuePairs, memoryWindows, arenaLeasedBlocks, openFds } = stats('shm');
    return { sessions, queuePairs, memoryWindows, arenaLeasedBlocks, openFds };
  };

  test('after many connections with calls of every kind', async () => {
    // This keeps the context open, so that its counters can be compared.
    const keep = await pair();
    const cycle = async (): Promise<void> => {
      const channel = createChannel(keep.address);
      const client = createClient(EchoDefinition, channel);
      const answer = await client.echo({ payload: new Uint8Array(100_000) });
      leaseOf(answer)?.release();
      await client.behave({ text: 'release', payload: new Uint8Array(50_000) });
      const hanging = caught(client.behave({ text: 'hang', payload: new Uint8Array(50_000) }));
      await client.echo({});
      await channel.close();
      expect(await hanging).toMatchObject({ code: Status.UNAVAILABLE });
      await until(() => keep.server.sessionCount === 1);
      // Both ends of `keep` stay. Native code frees other sessions later than the server does.
      await until(() => stats('shm').sessions === 2);
    };
    await keep.client.echo({});
    // The first connection allocates chunks of the arena, and they stay.
    await cycle();
    const before = counters();
    for (let i = 0; i < 20; ++i) await cycle();
    const after = counters() as { arenaLeasedBlocks: number };
    // The requests of hanging handlers are leased until they are garbage.
    expect({ ...after, arenaLeasedBlocks: 0 }).toEqual({ ...before, arenaLeasedBlocks: 0 });
  });

  test('of the context once its last user has closed, unless a lease keeps it', async () => {
    const channel = createInProcessChannel((server) => server.add(EchoDefinition, { echo: (r) => r }));
    const client = createClient(EchoDefinition, channel);
    await client.echo({});
    const lease = allocBuffer(10_000, channel);
    lease.bytes.fill(5);
    await channel.close();
    await turn();
    expect(lease.bytes.every((byte) => byte === 5)).toBe(true);
    expect(stats('sim').arenaLeasedBlocks).toBe(1);
    lease.release();
    const again = createInProcessChannel((server) => server.add(EchoDefinition, { echo: (r) => r }));
    await createClient(EchoDefinition, again).echo({});
    await again.close();
    await until(() => stats('sim').memoryRegions === 0);
  });

  test('a message that outlives its channel keeps its bytes', async () => {
    const channel = createInProcessChannel((server) => server.add(EchoDefinition, { echo: (r) => r }));
    const answer = await createClient(EchoDefinition, channel).echo({
      payload: new Uint8Array(100_000).fill(9),
    });
    await channel.close();
    await turn();
    expect(answer.payload.every((byte) => byte === 9)).toBe(true);
    leaseOf(answer)?.release();
  });
});
