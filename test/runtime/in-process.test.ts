/**
 * Tests createInProcessChannel: its server is a complete Server without an address, and it ends together with
 * the channel.
 */
import { createClient, createInProcessChannel, createServer, type Server, Status } from 'rdma-rpc';
import { addHealth } from 'rdma-rpc/health';
import { expect, test } from 'vitest';
import { caught, until } from '../outcomes.ts';
import { type EchoLog, echoHandlers } from './echo-service.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';

const log: EchoLog = { started: 0, aborted: [] };

/** Written like application code for the server that listens in production. */
function addServices(server: Server): void {
  server.add(EchoDefinition, echoHandlers(log));
  addHealth(server);
}

/** Returns the channel and its server. */
function started() {
  let server: Server | undefined;
  const channel = createInProcessChannel((given) => {
    server = given;
    addServices(given);
  });
  if (server === undefined) throw new Error('register was not called');
  return { channel, server };
}

test('a function that takes a Server registers services for both', async () => {
  const channel = createInProcessChannel(addServices);
  expect((await createClient(EchoDefinition, channel).echo({ number: 1 })).number).toBe(1);
  await channel.close();
  addServices(createServer());
});

test('listeners of onShutdown are called once by shutdown() and by close()', async () => {
  for (const end of ['shutdown', 'close'] as const) {
    const { channel, server } = started();
    let heard = 0;
    server.onShutdown(() => ++heard);
    await createClient(EchoDefinition, channel).echo({});
    expect([server.sessionCount, heard, server.stopping]).toEqual([1, 0, false]);
    if (end === 'shutdown') await server.shutdown();
    await channel.close();
    expect([end, server.sessionCount, heard, server.stopping]).toEqual([end, 0, 1, true]);
  }
});

test('calls under way finish in the grace period of shutdown(), and later ones are refused', async () => {
  let server: Server | undefined;
  let answer: (() => void) | undefined;
  const echo = (): Promise<{ number: number }> =>
    new Promise((resolve) => {
      answer = () => resolve({ number: 7 });
    });
  const channel = createInProcessChannel((given) => {
    server = given.add(EchoDefinition, { echo });
  });
  const client = createClient(EchoDefinition, channel);
  const underWay = client.echo({});
  await until(() => answer !== undefined);
  const ended = server?.shutdown({ graceMs: 60_000 });
  answer?.();
  expect((await underWay).number).toBe(7);
  await ended;
  expect(await caught(client.echo({}))).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
  await channel.close();
});

test('listen rejects with the reason', async () => {
  const { channel, server } = started();
  await expect(server.listen('127.0.0.1:0')).rejects.toThrow(
    'listen 127.0.0.1:0: the server of createInProcessChannel has no address; use createServer()',
  );
  await channel.close();
});
