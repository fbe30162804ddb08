/** Tests that no single call to a client, listener or client can block or delay the others. */

import {
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  createServer,
  type HandlerContext,
  type Server,
  type ServerOptions,
  Status,
} from 'rdma-rpc';
import { type Peers, peersOf, type ReverseServer, serveReverse } from 'rdma-rpc/reverse';
import { afterEach, expect, test, vi } from 'vitest';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { socketPath } from '../runtime/world.ts';
import { caught } from '../stream/stream-world.ts';

let closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closing.reverse()) await close();
  closing = [];
});

interface World {
  readonly server: Server;
  readonly peers: Peers;
  readonly channel: Channel;
  readonly reverse: ReverseServer;
  readonly log: EchoLog;
}

async function open(
  options: { server?: ServerOptions; channel?: ChannelOptions; prepare?: (peers: Peers) => void } = {},
): Promise<World> {
  const log: EchoLog = { started: 0, aborted: [] };
  const server = createServer(options.server);
  const peers = peersOf(server);
  options.prepare?.(peers);
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const channel = createChannel(await server.listen(`unix:${socketPath()}`), options.channel);
  closing.push(() => channel.close());
  const reverse = serveReverse(channel).add(EchoDefinition, echoHandlers(log));
  closing.push(() => reverse.close());
  await reverse.ready;
  return { server, peers, channel, reverse, log };
}
async function clientOf({ peers }: World) {
  await vi.waitFor(() => expect(peers.all).toHaveLength(1));
  return peers.client(EchoDefinition, peers.all[0]!);
}

test.each([
  ['request', 2_000_000, 'client', 'no'],
  ['response', 2_000_000, 'server', 'yes'],
] as const)('a %s beyond messageMaxBytes ends its own call only', async (what, bytes, side, processed) => {
  const limits = { messageMaxBytes: 1_000_000 };
  const world = await open({ server: limits, channel: limits });
  const gone = vi.fn();
  world.peers.on('gone', gone);
  const echo = await clientOf(world);
  const controller = new AbortController();
  const other = caught(() => echo.behave({ text: 'hang' }, { signal: controller.signal }));
  await vi.waitFor(() => expect(world.log.started).toBe(1));
  const large =
    what === 'response' ? echo.fetch({ number: bytes }) : echo.echo({ payload: new Uint8Array(bytes) });
  const error = await caught(() => large);
  expect(error).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, processed });
  expect(error.message).toMatch(
    new RegExp(
      `Echo/\\w+: a (message|response) of \\d+ bytes, but the ${side} accepts 1000000; raise messageMaxBytes of the ${side}`,
    ),
  );
  expect(await echo.echo({ number: 5 })).toMatchObject({ number: 5 });
  controller.abort();
  expect((await other).code).toBe(Status.CANCELLED);
  expect(gone).not.toHaveBeenCalled();
});

test('small limits of a message apply to each message, not to many that travel together', async () => {
  const limits = { messageMaxBytes: 1024 };
  const world = await open({ server: limits, channel: limits });
  const echo = await clientOf(world);
  const calls = Array.from({ length: 100 }, (_, number) =>
    echo.echo({ number, payload: new Uint8Array(500) }),
  );
  expect((await Promise.all(calls)).map(({ number }) => number)).toEqual(calls.map((_, i) => i));
});

test('a second serveReverse on a channel is refused with the reason; when the first is closed, another may serve', async () => {
  const world = await open();
  const second = serveReverse(world.channel).add(EchoDefinition, {});
  const error = await caught(() => second.ready);
  expect(error).toMatchObject({ code: Status.ALREADY_EXISTS, processed: 'no' });
  expect(error.message).toMatch(
    /serveReverse\(\) was already called on this channel; add services to its result, or close it first/,
  );
  await second.close();
  expect(await (await clientOf(world)).echo({ number: 3 })).toMatchObject({ number: 3 });
  await world.reverse.close();
  const third = serveReverse(world.channel).add(EchoDefinition, { echo: () => ({ number: 7 }) });
  await third.ready;
  expect(await (await clientOf(world)).echo({ number: 3 })).toMatchObject({ number: 7 });
  await third.close();
});

test('when its channel is closed it no longer serves, and reports that', async () => {
  const server = createServer();
  peersOf(server);
  const address = await server.listen(`unix:${socketPath()}`);
  await server.shutdown({ graceMs: 0 });
  const channel = createChannel(address);
  const serving = serveReverse(channel);
  await channel.close();
  expect(await caught(() => serving.ready)).toMatchObject({ code: Status.UNAVAILABLE });
  await serving.close();
});

test.each<[string, () => unknown]>([
  [
    'throws',
    () => {
      throw new Error('a mistake');
    },
  ],
  ['rejects', () => Promise.reject(new Error('a mistake'))],
])("a listener of 'peer' and 'gone' that %s costs no call", async (_, listener) => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const came = vi.fn();
  const world = await open({
    prepare: (peers) => void peers.on('peer', came).on('peer', listener).on('gone', listener),
  });
  const echo = await clientOf(world);
  expect(await echo.echo({ number: 5 })).toMatchObject({ number: 5 });
  expect(came).toHaveBeenCalledTimes(1);
  await world.reverse.close();
  await vi.waitFor(() => expect(warned).toHaveBeenCalledTimes(2));
  expect(warned.mock.calls.map(([text]) => String(text))).toEqual([
    expect.stringMatching(/a listener of 'peer' has failed: Error: a mistake/),
    expect.stringMatching(/a listener of 'gone' has failed: Error: a mistake/),
  ]);
});

test('calls back and forth that need more calls than there may be end with their deadlines, and leave nothing', async () => {
  const limits = { inflightMax: 4 };
  let peers!: Peers;
  const server = createServer(limits);
  peers = peersOf(server);
  server.add(EchoDefinition, {
    echo: async ({ number }, context: HandlerContext) => {
      if (number === 0) return {};
      return peers.client(EchoDefinition, context).echo({ number: number - 1 }, { context });
    },
  });
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const channel = createChannel(await server.listen(`unix:${socketPath()}`), limits);
  closing.push(() => channel.close());
  const client = createClient(EchoDefinition, channel);
  const reverse = serveReverse(channel).add(EchoDefinition, {
    echo: async ({ number }, context: HandlerContext) =>
      number === 0 ? {} : client.echo({ number: number - 1 }, { context }),
  });
  closing.push(() => reverse.close());
  await reverse.ready;
  // Each test needs three calls of the channel at once.
  const calls = await Promise.allSettled(
    Array.from({ length: 12 }, () => client.echo({ number: 5 }, { timeoutMs: 1000 })),
  );
  for (const call of calls)
    if (call.status === 'rejected') expect(call.reason).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
  expect(await client.echo({ number: 5 })).toMatchObject({ number: 0 });
});
