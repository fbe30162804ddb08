/**
 * Tests the number of connections that a server admits, and the limits on which the two sides agree.
 */
import {
  type Channel,
  createChannel,
  createClient,
  createServer,
  RpcError,
  type ServerOptions,
  Status,
} from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { RpcServer } from '../../runtime/server/server.ts';
import { comes, until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { hello, limits, linkTo } from './by-hand.ts';

let server: RpcServer | undefined;
let channel: Channel | undefined;
afterEach(async () => {
  await channel?.close();
  await server?.shutdown({ graceMs: 0 });
  server = undefined;
  channel = undefined;
});

test('a session beyond the limit is refused with its name; when another ends there is room', async () => {
  server = createServer({ sessionsMax: 1 }).add(EchoDefinition, { echo: (r) => r }) as RpcServer;
  const address = await server.listen('127.0.0.1:0');
  const first = createChannel(address);
  await first.ready();
  channel = createChannel(address);
  const error = await channel.ready().catch((e: RpcError) => e);
  expect(error).toMatchObject({
    code: Status.RESOURCE_EXHAUSTED,
    processed: 'no',
    message: /option sessionsMax of the server/,
  });
  await first.close();
  await until(() => server!.sessionCount === 0);
  await channel.ready();
});

test('handshakes at the same time do not get past it', async () => {
  server = createServer({ sessionsMax: 2 }).add(EchoDefinition, { echo: (r) => r }) as RpcServer;
  const address = await server.listen('127.0.0.1:0');
  const channels = Array.from({ length: 6 }, () => createChannel(address));
  const results = await Promise.allSettled(channels.map((each) => each.ready()));
  expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(2);
  for (const each of channels) await each.close();
  await until(() => server!.sessionCount === 0);
});

test('300 clients that connect at once are all accepted: none counts as silent before it has been read', async () => {
  const lines: string[] = [];
  server = createServer({
    handshakesMax: 8,
    sessionsPerPeerMax: 300,
    inflightMax: 16,
    log: (line) => lines.push(line),
  }) as RpcServer;
  const address = await server.listen('127.0.0.1:0');
  const channels = Array.from({ length: 300 }, () => createChannel(address, { inflightMax: 16 }));
  await Promise.all(channels.map((each) => each.ready()));
  expect(lines.filter((line) => /unfinished handshakes/.test(line))).toEqual([]);
  await Promise.all(channels.map((each) => each.close()));
});

test('a refusal says when to retry, and the client keeps to it', async () => {
  let asked = 0;
  const authenticate = (): string => {
    if (asked++ > 0) return 'known';
    throw new RpcError(Status.RESOURCE_EXHAUSTED, 'full', { trailer: { 'retry-pushback-ms': '120' } });
  };
  server = createServer({ authenticate, log: () => undefined }) as RpcServer;
  const address = await server.listen('127.0.0.1:0');
  channel = createChannel(address, { backoffMs: 1, backoffMaxMs: 600_000 });
  const told = new Promise<RpcError | undefined>((resolve) => {
    channel!.on('state', (state, error) => {
      if (state === 'failing') resolve(error);
    });
  });
  const ready = channel.ready({ timeoutMs: 10_000 });
  expect((await comes(told, 'the refusal'))?.trailer.get('retry-pushback-ms')).toBe('120');
  const begun = performance.now();
  await ready;
  // (Timers of Node may be a millisecond early.)
  expect(performance.now() - begun).toBeGreaterThan(110);
});

/** Starts a server that tells the first `times` clients to retry after `ms`. */
async function busy(times: number, ms: number): Promise<string> {
  let asked = 0;
  const authenticate = (): string => {
    if (asked++ >= times) return 'known';
    throw new RpcError(Status.RESOURCE_EXHAUSTED, 'full', { trailer: { 'retry-pushback-ms': String(ms) } });
  };
  server = createServer({ authenticate, log: () => undefined }) as RpcServer;
  server.add(EchoDefinition, { echo: (request) => request });
  return server.listen('127.0.0.1:0');
}

test('a call without waitForReady still waits for a server that says when to retry, within the time of an attempt', async () => {
  channel = createChannel(await busy(3, 20), { backoffMs: 1 });
  const states: string[] = [];
  channel.on('state', (state) => states.push(state));
  const client = createClient(EchoDefinition, channel);
  const first = client.echo({ number: 1 });
  await until(() => states.includes('failing'));
  // A call that begins in the middle of a pause also waits, and so does `ready()`.
  const answers = await Promise.all([first, client.echo({ number: 2 }), channel.ready()]);
  expect(answers.slice(0, 2)).toMatchObject([{ number: 1 }, { number: 2 }]);
  expect(states.filter((state) => state === 'failing')).toHaveLength(3);
});

test.each([
  ['one that says a later time', 1, 60_000],
  ['the sum of many pauses', 1000, 40],
])('it does not wait for longer: %s', async (_, times, ms) => {
  channel = createChannel(await busy(times, ms), {
    backoffMs: 1,
    backoffMaxMs: 600_000,
    connectTimeoutMs: 400,
  });
  const error = await createClient(EchoDefinition, channel)
    .echo({})
    .catch((e: RpcError) => e);
  expect(error).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, processed: 'no', message: /full/ });
  // A call in that pause fails with the reason at once.
  await expect(createClient(EchoDefinition, channel).echo({})).rejects.toThrow(/full/);
});

test.each<[string, ServerOptions, object, object]>([
  ['calls in flight: the server', { inflightMax: 3 }, {}, { inflightMax: 3 }],
  ['calls in flight: the client', { inflightMax: 5 }, {}, { inflightMax: 4 }],
  ['streams: the server', { streamsMax: 1 }, {}, { streamsMax: 1 }],
  ['streams: the client', {}, {}, { streamsMax: 2 }],
  ['streams: a client that knows none', {}, { streamsMax: undefined }, { streamsMax: 0 }],
])('the smaller of both wishes is agreed to: %s', async (_, options, theirs, agreed) => {
  server = new RpcServer(options, ['sim']);
  const link = linkTo(server);
  link.send(hello({ limits: { ...limits, ...theirs } }));
  expect(await link.receive()).toMatchObject({ limits: agreed });
});
