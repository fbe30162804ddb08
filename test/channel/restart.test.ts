/**
 * Tests servers as separate processes that end, hang and restart while a client continues to call. Every call
 * ends, and the channel reconnects.
 */
import { rmSync } from 'node:fs';
import { createServer as listenOnly, type Socket } from 'node:net';
import {
  type CallOptions,
  type Channel,
  createChannel,
  createClient,
  type Processed,
  type RpcError,
  Status,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { exited, ServerProcess } from '../runtime/process/processes.ts';
import { socketPath } from '../runtime/world.ts';
import { caught, turn } from './bed.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function open(address: string | string[], options: Parameters<typeof createChannel>[1] = {}) {
  const channel: Channel = createChannel(address, options);
  closing.push(() => channel.close());
  return { channel, client: createClient(EchoDefinition, channel) };
}
async function start(address: string): Promise<ServerProcess> {
  const server = await ServerProcess.start(address);
  closing.push(() => (server.child.exitCode ?? server.child.signalCode) === null && server.kill());
  return server;
}

test('when a server is killed and started five times, calls wait for it and none hangs', async () => {
  const path = socketPath();
  closing.push(() => rmSync(path, { force: true }));
  const { client } = open(`unix:${path}`, { backoffMs: 5, backoffMaxMs: 50 });
  for (let round = 0; round < 5; ++round) {
    const server = await start(`unix:${path}`);
    let stop = false;
    const outcomes = { ok: 0, lost: 0 };
    const callers = Array.from({ length: 8 }, async () => {
      while (!stop) {
        await client.echo({ number: round }, { waitForReady: true, timeoutMs: 20_000 }).then(
          () => ++outcomes.ok,
          (error: RpcError) => {
            // The call was in flight when the server ended.
            expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
            ++outcomes.lost;
          },
        );
        if (outcomes.ok > 100) stop = true;
      }
    });
    while (outcomes.ok < 50) await new Promise((resolve) => setImmediate(resolve));
    await Promise.race([server.kill(), Promise.all(callers)]);
    const next = await start(`unix:${path}`);
    await Promise.all(callers);
    expect(outcomes.ok).toBeGreaterThan(100);
    await next.kill();
  }
});

/** The ways in which a server ends. Each says whether calls on their way to the server may be lost. */
const ways: [string, (server: ServerProcess) => Promise<unknown>, lost: boolean][] = [
  ['shut down, with a grace', (server) => server.shutdown(), false],
  [
    'shut down without a grace',
    (server) => {
      const exit = exited(server.child);
      server.child.disconnect();
      return exit;
    },
    true,
  ],
  ['killed', (server) => server.kill(), true],
];

describe.each(ways)(
  'under a steady load a server is %s, and started again at its address',
  (_, leave, lost) => {
    const callers = 8;

    /**
     * Makes calls without a pause while the server ends and restarts. Returns the failed calls, by
     * `processed`. Every call ends.
     */
    async function restarted(options: CallOptions): Promise<Record<Processed, number>> {
      const first = await start('127.0.0.1:0');
      const { client, channel } = open(first.address, { backoffMs: 5, backoffMaxMs: 50 });
      const failed: Record<Processed, number> = { no: 0, maybe: 0, yes: 0 };
      let successes = 0;
      let stop = false;
      const load = Array.from({ length: callers }, async () => {
        while (!stop) {
          await client.echo({ number: 1 }, options).then(
            () => ++successes,
            (error: RpcError) => {
              expect(error.code, error.message).toBe(Status.UNAVAILABLE);
              ++failed[error.processed];
            },
          );
        }
      });
      const more = async (): Promise<void> => {
        const before = successes;
        while (successes < before + 100) await turn();
      };
      await more();
      await leave(first);
      // The test waits until the channel has noticed that no server listens.
      while (channel.state !== 'failing') await turn();
      await start(first.address);
      await more();
      stop = true;
      await Promise.all(load);
      return failed;
    }

    test('by default calls fail at once without a server; only calls in flight may have been sent', async () => {
      const failed = await restarted({});
      expect(failed.no).toBeGreaterThan(0);
      expect(failed.maybe).toBeLessThanOrEqual(lost ? callers : 0);
      expect(failed.yes).toBe(0);
    });

    test('with waitForReady only calls in flight fail', async () => {
      const { maybe, ...others } = await restarted({ waitForReady: true, timeoutMs: 60_000 });
      expect(others).toEqual({ no: 0, yes: 0 });
      expect(maybe).toBeLessThanOrEqual(lost ? callers : 0);
    });
  },
);

test('a listener that accepts and never answers costs one attempt, and the channel finds the next server', async () => {
  const sockets: Socket[] = [];
  const deaf = listenOnly((socket) => void sockets.push(socket));
  await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve));
  const address = `127.0.0.1:${(deaf.address() as { port: number }).port}`;
  const { channel, client } = open(address, { connectTimeoutMs: 100, backoffMs: 5, backoffMaxMs: 20 });
  expect((await caught(client.echo({}))).message).toMatch(/no answer within 100 ms/);
  const patient = client.echo({ number: 4 }, { waitForReady: true, timeoutMs: 20_000 });
  const closed = new Promise((resolve) => deaf.close(resolve));
  for (const socket of sockets) socket.destroy();
  await closed;
  await start(address);
  expect((await patient).number).toBe(4);
  expect(channel.state).toBe('ready');
});

test('while a process is stopped, attempts end; they succeed when it continues', async () => {
  const server = await start('127.0.0.1:0');
  server.child.kill('SIGSTOP');
  const { client } = open(server.address, { connectTimeoutMs: 100, backoffMs: 5, backoffMaxMs: 20 });
  expect(await caught(client.echo({}))).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
  const patient = client.echo({ number: 4 }, { waitForReady: true, timeoutMs: 20_000 });
  server.child.kill('SIGCONT');
  expect((await patient).number).toBe(4);
});

test('when one of two servers is killed, calls go to the other one, and later to both again', async () => {
  const paths = [socketPath(), socketPath()];
  closing.push(() => {
    for (const path of paths) rmSync(path, { force: true });
  });
  const addresses = paths.map((path) => `unix:${path}`);
  const [first] = [await start(addresses[0]!), await start(addresses[1]!)];
  const { channel, client } = open(addresses, { backoffMs: 5, backoffMaxMs: 20 });
  const both = () => channel.addresses.every(({ state }) => state === 'ready');
  while (!both()) await client.echo({});
  await first.kill();
  while (both()) await client.echo({}).catch(() => undefined);
  for (let number = 0; number < 100; ++number) expect((await client.echo({ number })).number).toBe(number);
  await start(addresses[0]!);
  while (!both()) await client.echo({});
});
