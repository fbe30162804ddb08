/**
 * Tests several worker threads at one address: all serve, a crashed worker is restarted, and all end
 * together.
 */

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Channel, type ChannelOptions, createChannel, createClient, leaseOf, Status } from 'rdma-rpc';
import { serveWorkers, type WorkerGroup, type WorkersOptions } from 'rdma-rpc/workers';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { replaceClock } from '../../../runtime/clock.ts';
import { handshakes } from '../../../runtime/limits.ts';
import { caught, until } from '../../outcomes.ts';
import { Authority } from '../../security/certificates.ts';
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
function reach({ address }: WorkerGroup, options: ChannelOptions = {}) {
  const channel = createChannel(address, options);
  channels.push(channel);
  return { channel, client: createClient(EchoDefinition, channel) };
}
const newGate = () => new Int32Array(new SharedArrayBuffer(8));

describe('a group of three workers', () => {
  test('serves messages of all sizes with all of them, and shares connections equally', async () => {
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

  test('over tcp each session reaches the thread that owns it', async () => {
    const group = await start();
    const threads = new Set<number>();
    for (let i = 0; i < 6; ++i) {
      const { channel, client } = reach(group, { fabric: 'tcp' });
      threads.add((await client.behave({ text: 'thread' })).number);
      expect(channel.fabric).toBe('tcp');
      const answer = await client.echo({ payload: new Uint8Array(300_000).fill(i) });
      expect(answer.payload.every((byte) => byte === i)).toBe(true);
      leaseOf(answer)?.release();
    }
    expect(threads.size).toBe(3);
    expect(group.workers.map(({ connections }) => connections)).toEqual([2, 2, 2]);
  });

  test('keeps silent connections from its workers, and limits their number', async () => {
    const group = await start({ workers: 2 });
    const port = Number(group.address.slice(group.address.lastIndexOf(':') + 1));
    let closed = 0;
    const silent = Array.from({ length: 200 }, () =>
      connect(port, '127.0.0.1')
        .resume()
        .on('error', () => undefined)
        .on('close', () => void ++closed),
    );
    try {
      await until(() => closed === silent.length - handshakes.default);
      expect((await reach(group).client.behave({ text: 'thread' })).number).toBeGreaterThan(0);
      expect(group.workers.reduce((sum, { connections }) => sum + connections, 0)).toBe(1);
    } finally {
      for (const socket of silent) socket.destroy();
    }
  });

  test('serves a unix socket, too, and a closed client makes room on its worker', async () => {
    const group = await start({
      address: `unix:${process.cwd()}/build/group-${process.pid}.sock`,
      workers: 2,
    });
    const first = reach(group);
    await first.channel.ready();
    await reach(group).channel.ready();
    await first.channel.close();
    const hasRoom = (): boolean => group.workers.some(({ connections }) => connections === 0);
    await until(hasRoom);
    // A worker that answers late, because the machine is busy, gets one of the next connections.
    while (hasRoom()) await reach(group).channel.ready();
  });

  test('loses only the connections of a worker that crashes, which is restarted', async () => {
    const errors: Error[] = [];
    const group = await start({ onWorkerError: (error) => void errors.push(error) });
    const clients = [1, 2, 3].map(() => reach(group));
    const threads = await Promise.all(
      clients.map(async ({ client }) => (await client.behave({ text: 'thread' })).number),
    );
    expect(new Set(threads).size).toBe(3);
    const error = await caught(clients[0]!.client.behave({ text: 'crash' }));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    for (const { client, channel } of clients.slice(1)) {
      expect(channel.state).toBe('ready');
      expect((await client.echo({ number: 1 })).number).toBe(1);
    }
    await until(() => errors.length > 0 && group.workers.every(({ up }) => up));
    expect(errors.map(({ message }) => message)).toEqual(['as planned']);
    expect(group.workers.map(({ restarts }) => restarts).sort()).toEqual([0, 0, 1]);
    expect(threads).not.toContain((await clients[0]!.client.behave({ text: 'thread' })).number);
  });

  test('replaces a worker that has shut down its own server, and gives it no further connection', async () => {
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

  test('drains: calls under way are answered, and then every thread ends', async () => {
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
    expect(await hanging).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
  });
});

describe('a worker that cannot be restarted', () => {
  test('is restarted again and again, and the process continues', async () => {
    const errors: string[] = [];
    // The data can be copied to the first worker, but not to the second.
    const workerData: { secret?: () => void } = {};
    const group = await start({
      workers: 1,
      workerData,
      onWorkerError: ({ message }) => errors.push(message),
    });
    const { client } = reach(group);
    workerData.secret = () => undefined;
    await caught(client.behave({ text: 'crash' }));
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(2), { timeout: 30_000 });
    expect(errors[0]).toBe('as planned');
    expect(new Set(errors.slice(1))).toEqual(new Set([expect.stringMatching(/could not be cloned/)]));
    delete workerData.secret;
    await vi.waitFor(() => expect(group.workers[0]).toMatchObject({ up: true }), { timeout: 60_000 });
    expect((await client.echo({ number: 4 })).number).toBe(4);
  });

  test('is restarted after longer and longer pauses, however long it has run before', async () => {
    const errors: string[] = [];
    const workerData: { secret?: () => void } = {};
    const group = await start({
      workers: 1,
      workerData,
      onWorkerError: ({ message }) => errors.push(message),
    });
    const { client } = reach(group);
    await client.echo({});
    // The worker has run for an hour.
    const now = performance.now.bind(performance);
    replaceClock(() => now() + 3_600_000);
    const pauses: number[] = [];
    const timeout = globalThis.setTimeout;
    const timer = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((then: () => void, ms: number) => {
      if (errors.length > 0 && [0, 100, 200, 400].includes(ms)) pauses.push(ms);
      return timeout(then, ms);
    }) as typeof setTimeout);
    workerData.secret = () => undefined;
    await caught(client.behave({ text: 'crash' }, { timeoutMs: 86_400_000 }));
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(3), { timeout: 60_000 });
    replaceClock(undefined);
    timer.mockRestore();
    expect(pauses.slice(0, 4)).toEqual([0, 100, 200, 400]);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('a mistake');
      },
    ],
    ['rejects', () => Promise.reject(new Error('a mistake'))],
  ])('an onWorkerError that %s does not end the process', async (_, fails) => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const onWorkerError = vi.fn(fails);
    const group = await start({ workers: 1, onWorkerError });
    await caught(reach(group).client.behave({ text: 'crash' }));
    await until(() => onWorkerError.mock.calls.length > 0 && group.workers.every(({ up }) => up));
    expect(warned.mock.calls.map(([text]) => String(text))).toContainEqual(
      expect.stringMatching(/as planned; and onWorkerError has failed: a mistake/),
    );
    warned.mockRestore();
  });
});

describe('a worker whose thread is busy', () => {
  test('gets no new connections while others answer, although it has the fewest', async () => {
    const gate = newGate();
    const group = await start({ workerData: { gate } });
    const first = [1, 2, 3, 4, 5, 6].map(() => reach(group));
    const threads = await Promise.all(
      first.map(async ({ client }) => (await client.behave({ text: 'thread' })).number),
    );
    const busy = threads[0]!;
    void first[0]!.client.behave({ text: 'block' }).catch(() => undefined);
    await until(() => Atomics.load(gate, 0) === 1);
    try {
      for (const [i, { channel }] of first.entries()) if (threads[i] === busy) await channel.close();
      for (let i = 0; i < 6; ++i) {
        const { client, channel } = reach(group);
        expect((await client.behave({ text: 'thread' })).number).not.toBe(busy);
        await channel.close();
      }
    } finally {
      Atomics.store(gate, 1, 1);
      Atomics.notify(gate, 1);
    }
    // This worker is free again, and has the fewest connections.
    const back = async (): Promise<void> => {
      const { client, channel } = reach(group);
      const { number } = await client.behave({ text: 'thread' });
      await channel.close();
      expect(number).toBe(busy);
    };
    await vi.waitFor(back, { timeout: 60_000 });
  });

  test('gets new connections when there is no other worker', async () => {
    const gate = newGate();
    const group = await start({ workers: 1, workerData: { gate } });
    const blocked = reach(group).client.behave({ text: 'block' });
    await until(() => Atomics.load(gate, 0) === 1);
    const ready = reach(group).channel.ready({ timeoutMs: 60_000 });
    Atomics.store(gate, 1, 1);
    Atomics.notify(gate, 1);
    await ready;
    expect((await blocked).number).toBeGreaterThan(0);
  });
});

describe('the main thread', () => {
  test('reads the peer of a unix socket, and tells the workers', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-group-'));
    try {
      const address = `unix:${join(folder, 's')}`;
      const group = await start({ workers: 1, address, socket: { mode: 0o600 } });
      const uid = process.geteuid!();
      expect((await reach(group).client.behave({ text: 'peer' })).text).toBe(`uid:${uid} ${uid} undefined`);
      expect(statSync(join(folder, 's')).mode & 0o777).toBe(0o600);
      for (const running of groups.splice(0)) await running.shutdown({ graceMs: 0 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test.each(['shm', 'tcp'] as const)(
    'reads the certificate of a client, and tells the workers (%s)',
    async (fabric) => {
      const authority = new Authority();
      const { ca } = authority;
      const { cert, key } = authority.issue({ addresses: ['127.0.0.1'] });
      const group = await start({ workers: 1, tls: { cert, key, ca } });
      const web = authority.issue({ uris: ['spiffe://example.org/web'] });
      const { client } = reach(group, { fabric, tls: { ca, cert: web.cert, key: web.key } });
      expect((await client.behave({ text: 'peer' })).text).toBe(
        `spiffe://example.org/web undefined ${web.certificate.fingerprint256}`,
      );
      const unknown = await caught(reach(group, { tls: { ca } }).client.echo({}));
      expect([unknown.code, unknown.message]).toEqual([
        Status.UNAUTHENTICATED,
        expect.stringMatching(/accepts only clients with a certificate that it trusts/),
      ]);
      const plain = await caught(reach(group).client.echo({}));
      expect([plain.code, plain.message]).toEqual([
        Status.UNAUTHENTICATED,
        expect.stringMatching(/requires TLS on host:port addresses/),
      ]);
    },
  );

  test.each(['shm', 'tcp'] as const)(
    'reads which shared secret a client has proved, and sessions of workers are sealed with its keys (%s)',
    async (fabric) => {
      const psk = { fleet: randomBytes(32), visitors: randomBytes(32) };
      const lines: string[] = [];
      const group = await start({ workers: 2, tls: { psk }, log: (line) => lines.push(line) });
      const security = { require: 'sealed' } as const;
      for (const [name, key] of Object.entries(psk)) {
        const { channel, client } = reach(group, { fabric, security, tls: { psk: { [name]: key } } });
        expect((await client.behave({ text: 'peer' })).text).toBe(`psk:${name} undefined undefined`);
        expect(channel.session?.security).toBe('sealed');
      }
      const guessed = await caught(reach(group, { tls: { psk: { fleet: psk.visitors } } }).client.echo({}));
      expect([guessed.code, guessed.message]).toEqual([
        Status.UNAUTHENTICATED,
        expect.stringMatching(/the server has no such key under this name/),
      ]);
      await caught(reach(group).client.echo({}));
      for (const channel of channels) await channel.close();
      const says = (why: string) =>
        expect.stringMatching(new RegExp(`^handshake with 127\\.0\\.0\\.1:\\d+ failed: ${why}`));
      await until(() => lines.some((line) => line.includes('requires TLS')));
      expect(lines).toContainEqual(says('TLS: .+: it has another key than "fleet"$'));
      expect(lines).toContainEqual(says('this server requires TLS on host:port addresses'));
    },
  );
});
