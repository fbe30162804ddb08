/**
 * Tests the effect on sessions between two RDMA devices when one side ends, with or without a proper
 * shutdown.
 */
import { fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { RpcError, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { compiled, exited, nextMessage, type ServerProcess } from '../runtime/process/processes.ts';
import { socketPath } from '../runtime/world.ts';
import { caught, clientDevice, endAll, pattern, reach, sharedServer, startServer, until } from './pair.ts';

afterEach(endAll);

async function nothingIsLeft(server: ServerProcess): Promise<void> {
  await until(
    () => server.report(),
    ({ sessions, stats }) => sessions === 0 && stats.queuePairs === 0,
  );
}

describe('a server that is killed', () => {
  test.each([
    ['idle', 0, 0],
    ['with small calls in flight', 50, 0],
    ['with large calls in flight', 0, 10],
    ['with small and large calls in flight', 50, 5],
  ])('%s: every call settles once, and the next server is found', async (_, small, large) => {
    const address = `unix:${socketPath()}`;
    const server = await startServer(address);
    const { client, channel } = reach(server.address);
    await client.echo({});
    const payload = pattern(300_000, 1);
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
    await until(
      () => channel.state,
      (state) => state !== 'ready',
    );
    await startServer(address);
    expect((await client.echo({ number: 3 })).number).toBe(3);
    rmSync(address.slice('unix:'.length), { force: true });
  });
});

describe('a server that is stopped by a signal', () => {
  test.each([0, 300_000])('lets a call with %i bytes end at its deadline', async (bytes) => {
    const server = await startServer();
    const { client } = reach(server.address);
    await client.echo({});
    server.child.kill('SIGSTOP');
    const call = client.echo({ payload: pattern(bytes, 1) }, { timeoutMs: 200 });
    expect(await caught(call)).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
    server.child.kill('SIGCONT');
    // The server kept the call until its late answer came. Later calls are not affected.
    expect((await client.echo({ number: 1 })).number).toBe(1);
  });
});

describe('a server that shuts down', () => {
  test('disconnects its clients and ends, and the next server serves them', async () => {
    const address = `unix:${socketPath()}`;
    const server = await startServer(address);
    const { client, channel } = reach(server.address);
    const hanging = caught(client.behave({ text: 'hang' }));
    await client.echo({});
    expect((await server.shutdown()).code).toBe(0);
    expect(await hanging).toMatchObject({ code: Status.UNAVAILABLE });
    expect(channel.state).toBe('idle');
    await startServer(address);
    expect((await client.echo({ number: 4 })).number).toBe(4);
    rmSync(address.slice('unix:'.length), { force: true });
  });
});

describe('a client that', () => {
  const env = { ...process.env, RDMA_RPC_FABRIC: 'verbs', RDMA_RPC_DEVICE: clientDevice };
  const run = (ending: string, server: ServerProcess) =>
    fork(compiled('client-script'), [ending, server.address], { env, silent: true });
  const server = sharedServer();

  test('has its answer and never closes its channel can end', async () => {
    expect(await exited(run('falls idle', server()))).toBe(0);
    await nothingIsLeft(server());
  });

  test.each([
    ['exits', 0],
    ['throws', 1],
    ['closes', 0],
  ])('%s with calls in flight ends with code %i, and the server works on', async (ending, code) => {
    expect(await exited(run(ending, server()))).toBe(code);
    await nothingIsLeft(server());
    const { client } = reach(server().address);
    expect((await client.echo({ number: 8 })).number).toBe(8);
  });

  test('is killed with calls in flight: their handlers are cancelled, and the server keeps nothing', async () => {
    const before = (await server().report()).log.aborted.length;
    const child = run('waits to be killed', server());
    await nextMessage(child);
    child.kill('SIGKILL');
    await exited(child);
    await nothingIsLeft(server());
    expect((await server().report()).log.aborted.slice(before)).toEqual([Status.CANCELLED, Status.CANCELLED]);
  });
});
