/**
 * Client and server are separate processes over shared memory. The tests check the effect on one process when
 * the other ends at a bad moment.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import {
  allocBuffer,
  type Channel,
  createChannel,
  createClient,
  leaseOf,
  RpcError,
  type RuntimeOptions,
  registerBuffer,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { caught } from '../../outcomes.ts';
import { EchoDefinition } from '../gen/echo.rdma.ts';
import { socketPath } from '../world.ts';
import { compiled, exited, nextMessage, ServerProcess } from './processes.ts';

const channels: Channel[] = [];
const servers: ServerProcess[] = [];
afterEach(async () => {
  for (const channel of channels.splice(0)) await channel.close();
  for (const server of servers.splice(0))
    if (server.child.exitCode === null && server.child.signalCode === null) await server.kill();
});

async function start(address?: string, options?: RuntimeOptions): Promise<ServerProcess> {
  const server = await ServerProcess.start(address, options);
  servers.push(server);
  return server;
}
function clientOf(server: ServerProcess) {
  const channel = createChannel(server.address);
  channels.push(channel);
  return { channel, client: createClient(EchoDefinition, channel) };
}
const pattern = (bytes: number, seed: number): Uint8Array =>
  new Uint8Array(Buffer.alloc(bytes, `${seed}-pattern-`));

describe('two processes', () => {
  test('messages of all sizes arrive, each by the path for its size', async () => {
    const server = await start();
    const { client } = clientOf(server);
    const before = stats('shm');
    for (const bytes of [10, 4000, 8000, 9000, 20_000, 100_000, 3_000_001]) {
      const payload = pattern(bytes, bytes);
      const answer = await client.echo({ payload, number: bytes });
      expect(Buffer.compare(answer.payload, payload)).toBe(0);
      leaseOf(answer)?.release();
    }
    const here = stats('shm');
    const there = (await server.report()).stats;
    expect(here.inlineSends).toBeGreaterThan(before.inlineSends);
    expect(here.eagerSends).toBeGreaterThan(before.eagerSends);
    expect(there.bulkReads).toBeGreaterThan(0);
    expect(there.bulkWrites).toBeGreaterThan(0);
    expect(there.bulkReadBytes).toBeGreaterThanOrEqual(3_100_001);
    // Both directions count.
    expect([here, there].map((each) => each.segmentedMessages)).toEqual([before.segmentedMessages + 1, 1]);
  });

  test.each([1024, 2000, 16_384])(
    'a peer whose slots hold %d bytes gets no larger frames',
    async (slotBytes) => {
      const { client } = clientOf(await start(undefined, { slotBytes }));
      for (const bytes of [500, 990, 1030, 2100, 8000, 8300, 20_000]) {
        const payload = pattern(bytes, bytes);
        const answer = await client.echo({ payload });
        expect(Buffer.compare(answer.payload, payload)).toBe(0);
        leaseOf(answer)?.release();
      }
      const metadata = { k: 'v'.repeat(900) };
      expect((await client.behave({ text: 'metadata' }, { metadata })).number).toBe(1);
    },
  );

  test('when the arena is full, calls wait for memory or name the option that is too small', async () => {
    const server = await start(undefined, { arenaBytes: 4 << 20 });
    const { client } = clientOf(server);
    const payload = new Uint8Array(1 << 20);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => client.behave({ text: 'release', payload })),
    );
    expect(answers.every((answer) => answer.text === 'leased')).toBe(true);
    const error = await caught(client.echo({ payload: new Uint8Array(6 << 20) }, { timeoutMs: 10_000 }));
    expect(error).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, message: /arenaBytes/ });
    expect((await client.echo({ number: 2 })).number).toBe(2);
  });

  test('a registered buffer is registered once', async () => {
    const { client } = clientOf(await start());
    // Shorter buffers are copied (`copiedRequestBytes`), whether or not they are registered.
    const payload = pattern(4_500_000, 1);
    await client.echo({});
    registerBuffer(payload);
    const before = stats('shm');
    for (let i = 0; i < 10; ++i) leaseOf(await client.echo({ payload }))?.release();
    const after = stats('shm');
    expect(after.mrMisses).toBe(before.mrMisses);
    expect(after.mrHits).toBeGreaterThanOrEqual(before.mrHits + 10);
  });

  test('deadlines hold while the server is stopped, and calls go on when it continues', async () => {
    const server = await start();
    const { client } = clientOf(server);
    await client.echo({});
    server.child.kill('SIGSTOP');
    expect(await caught(client.echo({}, { timeoutMs: 50 }))).toMatchObject({
      code: Status.DEADLINE_EXCEEDED,
    });
    server.child.kill('SIGCONT');
    expect((await client.echo({ number: 1 })).number).toBe(1);
  });

  test('a large call to a stopped server ends at its deadline, and no other call ends', async () => {
    const server = await start();
    const { client, channel } = clientOf(server);
    await client.echo({});
    const states: string[] = [];
    channel.on('state', (state) => states.push(state));
    const other = client.echo({ number: 2 });
    server.child.kill('SIGSTOP');
    const payload = new Uint8Array(1 << 20);
    expect(await caught(client.echo({ payload }, { timeoutMs: 50 }))).toMatchObject({
      code: Status.DEADLINE_EXCEEDED,
    });
    server.child.kill('SIGCONT');
    expect((await client.echo({ number: 1 })).number).toBe(1);
    expect((await other).number).toBe(2);
    expect(states).toEqual([]);
    await vi.waitFor(() => expect(stats('shm').callsPendingRelease).toBe(0));
  });
});

describe('memory of the application, in a call to a stopped server', () => {
  test('a lease that the server may still write to is lost with its call, and returns to the arena', async () => {
    const server = await start();
    const { client, channel } = clientOf(server);
    await client.echo({});
    const { arenaLeasedBlocks } = stats('shm');
    const into = allocBuffer(100_000, channel);
    const view = into.bytes;
    server.child.kill('SIGSTOP');
    const error = await caught(client.fetch({ number: 50_000 }, { into, timeoutMs: 50 }));
    expect(error.message).toContain('the lease is released');
    expect([into.released, view.length, stats('shm').callsPendingRelease]).toEqual([true, 0, 1]);
    // The blocks of the lease and of the request.
    expect(stats('shm').arenaLeasedBlocks).toBe(arenaLeasedBlocks + 2);
    server.child.kill('SIGCONT');
    const next = allocBuffer(100_000, channel);
    await client.fetch({ number: 50_000 }, { into: next });
    expect([next.released, next.bytes[49_999]]).toEqual([false, 50_000 & 0xff]);
    next.release();
    await vi.waitFor(() => {
      const { callsPendingRelease, arenaLeasedBlocks: leased } = stats('shm');
      expect([callsPendingRelease, leased]).toEqual([0, arenaLeasedBlocks]);
    });
  });

  test("no handler sees bytes that were written to a request's buffer after its call has settled", async () => {
    const server = await start();
    const { client } = clientOf(server);
    await client.echo({});
    for (let round = 0; round < 5; ++round) {
      server.child.kill('SIGSTOP');
      const payloads = Array.from({ length: 20 }, (_, i) => new Uint8Array(300_000).fill(i + 1));
      const calls = payloads.map((payload) =>
        caught(client.behave({ text: 'check', payload }, { timeoutMs: 20 })).finally(() =>
          payload.fill(0xa5),
        ),
      );
      for (const error of await Promise.all(calls)) expect(error.code).toBe(Status.DEADLINE_EXCEEDED);
      server.child.kill('SIGCONT');
      await client.echo({});
    }
    expect((await server.report()).log.torn ?? 0).toBe(0);
  });
});

describe('a server that is killed', () => {
  test.each([
    ['idle', 0, 0],
    ['with small calls in flight', 200, 0],
    ['with large calls in flight', 0, 40],
    ['with small and large calls in flight', 200, 20],
  ])('%s: every call fails once with UNAVAILABLE, and the next server is found', async (_, small, large) => {
    const path = socketPath();
    const server = await start(`unix:${path}`);
    const { client, channel } = clientOf(server);
    await client.echo({});
    const payload = new Uint8Array(1 << 20);
    let settled = 0;
    const calls = [
      ...Array.from({ length: small }, () => client.behave({ text: 'hang' })),
      ...Array.from({ length: large }, () => client.behave({ text: 'hang', payload })),
      ...Array.from({ length: large }, () => client.echo({ payload })),
    ].map((call) => call.finally(() => ++settled));
    const outcome = Promise.allSettled(calls);
    if (small > 0) await Promise.race([client.echo({}), outcome]);
    await server.kill();
    for (const result of await outcome) {
      if (result.status === 'fulfilled') continue;
      expect(result.reason).toBeInstanceOf(RpcError);
      expect((result.reason as RpcError).code).toBe(Status.UNAVAILABLE);
    }
    expect(settled).toBe(calls.length);
    // The dead server has left its socket file.
    expect(existsSync(path)).toBe(true);
    await start(`unix:${path}`);
    while (channel.state === 'ready') await new Promise((resolve) => setImmediate(resolve));
    expect((await client.echo({ number: 3 })).number).toBe(3);
    rmSync(path, { force: true });
  });

  test('leaves nothing in /dev/shm', () => {
    expect(readdirSync('/dev/shm').filter((name) => name.includes('rdma'))).toEqual([]);
  });
});

describe('a client that', () => {
  async function run(
    ending: string,
    server: ServerProcess,
  ): Promise<{ child: ChildProcess; output: () => string }> {
    const child = fork(compiled('client-script'), [ending, server.address], { silent: true });
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    return { child, output: () => output };
  }
  async function serverIsWell(server: ServerProcess): Promise<void> {
    let report = await server.report();
    while (report.sessions > 0) report = await server.report();
    expect(report.stats.queuePairs).toBe(0);
    const { client, channel } = clientOf(server);
    expect((await client.echo({ number: 8 })).number).toBe(8);
    await channel.close();
  }

  test('has its answer and never closes its channel can end', async () => {
    const server = await start();
    const { child, output } = await run('falls idle', server);
    expect(await exited(child)).toBe(0);
    expect(output().trim()).toBe('42');
    await serverIsWell(server);
  });

  test.each([
    ['exits', 0],
    ['exits in a callback', 0],
    ['throws', 1],
    ['closes', 0],
  ])('%s with calls in flight ends with code %i, and the server works on', async (ending, code) => {
    const server = await start();
    const { child } = await run(ending, server);
    expect(await exited(child)).toBe(code);
    await serverIsWell(server);
  });

  test('is killed with calls in flight: their handlers are cancelled', async () => {
    const server = await start();
    const { child } = await run('waits to be killed', server);
    await nextMessage(child);
    child.kill('SIGKILL');
    await exited(child);
    await serverIsWell(server);
    expect((await server.report()).log.aborted).toEqual([Status.CANCELLED, Status.CANCELLED]);
  });
});

describe('a server process that gets a signal to stop', () => {
  test('ends with code 0 while a client stays connected', async () => {
    const server = await start();
    const { client, channel } = clientOf(server);
    const hanging = caught(client.behave({ text: 'hang' }));
    await client.echo({});
    expect((await server.shutdown()).code).toBe(0);
    expect(await hanging).toMatchObject({ code: Status.UNAVAILABLE });
    expect(channel.state).toBe('idle');
  });

  test('ends with code 0 and nothing registered for peers while a client is stopped with calls of every kind', async () => {
    const server = await start();
    const child = fork(compiled('client-script'), ['waits to be killed', server.address]);
    await nextMessage(child);
    child.kill('SIGSTOP');
    const { code, stats } = await server.shutdown();
    expect(code).toBe(0);
    expect(stats).toMatchObject({ sessions: 0, queuePairs: 0, memoryWindows: 0 });
    child.kill('SIGKILL');
    await exited(child);
  });
});

describe('worker threads', () => {
  test('each has its own context, and may be terminated in the middle of calls', async () => {
    const server = await start();
    for (let round = 0; round < 8; ++round) {
      const workers = Array.from(
        { length: 3 },
        () => new Worker(compiled('worker'), { workerData: server.address }),
      );
      await Promise.all(
        workers.map(
          (worker) => new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject)),
        ),
      );
      await Promise.all(workers.map((worker) => worker.terminate()));
    }
    let report = await server.report();
    while (report.sessions > 0) report = await server.report();
    expect(report.stats.queuePairs).toBe(0);
  });
});
