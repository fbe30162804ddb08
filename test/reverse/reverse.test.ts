/** Tests calls from a server to its clients, over the connections that the clients have made. */
import {
  type Channel,
  createChannel,
  createClient,
  createServer,
  type HandlerContext,
  leaseOf,
  RpcError,
  type Server,
  Status,
  stats,
} from 'rdma-rpc';
import { type Peer, type Peers, peersOf, type ReverseServer, serveReverse } from 'rdma-rpc/reverse';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { socketPath } from '../runtime/world.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { caught } from '../stream/stream-world.ts';

let server: Server;
let peers: Peers;
let channel: Channel;
let reverse: ReverseServer;
let log: EchoLog;
let address: string;
const errors: string[] = [];

function serve(): ReverseServer {
  return serveReverse(channel, {
    onHandlerError: (error, method) => errors.push(`${method} ${error}`),
  }).add(EchoDefinition, echoHandlers(log));
}

beforeEach(async () => {
  log = { started: 0, aborted: [] };
  errors.length = 0;
  server = createServer();
  peers = peersOf(server);
  // The server asks the caller to echo the text that the caller has sent.
  server.add(StreamsDefinition, {
    unary: async ({ text, count }, context: HandlerContext) => {
      const answer = await peers.client(EchoDefinition, context).echo({ text, number: count }, { context });
      return { number: answer.number + 1, text: answer.text };
    },
  });
  address = await server.listen(`unix:${socketPath()}`);
  channel = createChannel(address);
  reverse = serve();
});
afterEach(async () => {
  await reverse.close();
  await channel.close();
  await server.shutdown({ graceMs: 0 });
});

async function onlyPeer(): Promise<Peer> {
  await reverse.ready;
  await vi.waitFor(() => expect(peers.all).toHaveLength(1));
  return peers.all[0]!;
}

test('the server calls the client', async () => {
  const echo = peers.client(EchoDefinition, await onlyPeer());
  expect(await echo.echo({ text: 'hällo', number: 3 })).toMatchObject({ text: 'hällo', number: 3 });
  expect(log.started).toBe(1);
});

test('a peer is the one in `context.peer`, and its name as text', async () => {
  const peer = await onlyPeer();
  expect(peer.info).toMatchObject({ address, identity: `uid:${process.geteuid!()}`, pid: process.pid });
  expect(`${peer}`).toBe(String(peer.info));
  expect(peer.name).toBe(`${peer}`);
});

test('a handler calls the client that has called it', async () => {
  await onlyPeer();
  const client = createClient(StreamsDefinition, channel);
  expect(await client.unary({ text: 'x', count: 4 })).toMatchObject({ text: 'x', number: 5 });
  const other = createChannel(address);
  expect(await caught(() => createClient(StreamsDefinition, other).unary({}))).toMatchObject({
    code: Status.FAILED_PRECONDITION,
  });
  await other.close();
});

test.each([0, 1000, 8192, 100_000, 3_000_000])('%d bytes arrive in both directions', async (bytes) => {
  const echo = peers.client(EchoDefinition, await onlyPeer());
  const payload = new Uint8Array(bytes).map((_, i) => i);
  const answer = await echo.echo({ payload });
  expect(Buffer.compare(answer.payload, payload)).toBe(0);
  leaseOf(answer)?.release();
  await reverse.close();
  // The memory of the request, which the handler kept, is free again without a garbage collection.
  await vi.waitFor(() => expect(stats('shm').arenaLeasedBlocks).toBe(0), { timeout: 30_000 });
});

test('calls beyond inflightMax wait in the queue', async () => {
  const echo = peers.client(EchoDefinition, await onlyPeer());
  const calls = Array.from({ length: 3000 }, (_, number) => echo.echo({ number }));
  expect((await Promise.all(calls)).map(({ number }) => number)).toEqual(calls.map((_, i) => i));
});

test('errors, metadata and trailers arrive', async () => {
  const echo = peers.client(EchoDefinition, await onlyPeer());
  expect(await caught(() => echo.behave({ text: 'not found' }))).toMatchObject({
    code: Status.NOT_FOUND,
    rawMessage: 'no such thing',
    processed: 'yes',
  });
  expect(await caught(() => echo.behave({ text: 'throw' }))).toMatchObject({
    code: Status.INTERNAL,
    rawMessage: 'test.echo.Echo/Behave: the handler failed',
  });
  expect(await caught(() => echo.behave({ text: 'nothing' }))).toMatchObject({
    code: Status.INTERNAL,
    rawMessage: "test.echo.Echo/Behave: the response cannot be encoded; the server's log may say why",
  });
  expect(errors).toEqual([
    'test.echo.Echo/Behave Error: a secret',
    expect.stringMatching(/^test\.echo\.Echo\/Behave \w+Error: /),
  ]);
  expect(await caught(() => echo.missing({}))).toMatchObject({ code: Status.UNIMPLEMENTED, processed: 'no' });
  const onTrailer = vi.fn();
  const answer = await echo.behave({ text: 'metadata' }, { metadata: { k: 'v' }, onTrailer });
  expect(answer.number).toBe(1);
  expect([...onTrailer.mock.calls[0]![0]]).toEqual([['k', 'v']]);
});

describe('a cancelled call', () => {
  test.each([
    ['by its signal', Status.CANCELLED],
    ['by its deadline', Status.DEADLINE_EXCEEDED],
  ])('%s', async (_, code) => {
    const echo = peers.client(EchoDefinition, await onlyPeer());
    const controller = new AbortController();
    const options = code === Status.CANCELLED ? { signal: controller.signal } : { timeoutMs: 1000 };
    const error = caught(() => echo.behave({ text: 'hang' }, options));
    await vi.waitFor(() => expect(log.started).toBe(1));
    controller.abort();
    expect(await error).toMatchObject({ code, processed: 'maybe' });
    await vi.waitFor(() => expect(log.aborted).toHaveLength(1));
    expect(await echo.echo({ number: 2 })).toMatchObject({ number: 2 });
  });

  test('before it was made is not sent', async () => {
    const echo = peers.client(EchoDefinition, await onlyPeer());
    for (const options of [{ timeoutMs: 0 }, { signal: AbortSignal.abort() }]) {
      expect((await caught(() => echo.echo({}, options))).processed).toBe('no');
    }
    expect(await caught(() => echo.echo({ number: 'x' } as never))).toMatchObject({
      code: Status.INTERNAL,
      processed: 'no',
    });
    expect(log.started).toBe(0);
  });
});

test('when the connection is lost, calls fail, handlers are notified, and the client serves again', async () => {
  const first = await onlyPeer();
  const echo = peers.client(EchoDefinition, first);
  const error = caught(() => echo.behave({ text: 'hang' }));
  await vi.waitFor(() => expect(log.started).toBe(1));
  await server.shutdown({ graceMs: 0 });
  expect(await error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
  expect(first.connected).toBe(false);
  expect(await caught(() => echo.echo({}))).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
  await vi.waitFor(() => expect(log.aborted).toEqual([Status.CANCELLED]));
  server = createServer();
  peers = peersOf(server);
  await server.listen(address);
  await vi.waitFor(() => expect(peers.all).toHaveLength(1), { timeout: 10_000 });
  expect(await peers.client(EchoDefinition, peers.all[0]!).echo({ number: 9 })).toMatchObject({ number: 9 });
});

test('a server that shuts down waits only for the answers to its own calls', async () => {
  const echo = peers.client(EchoDefinition, await onlyPeer());
  const controller = new AbortController();
  const error = caught(() => echo.behave({ text: 'hang' }, { signal: controller.signal }));
  await vi.waitFor(() => expect(log.started).toBe(1));
  const down = server.shutdown({ graceMs: 86_400_000 });
  expect(await caught(() => echo.echo({}))).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
  controller.abort();
  await error;
  await down;
});

test('close() notifies the server, and calls fail', async () => {
  const gone = vi.fn();
  peers.on('gone', gone);
  const peer = await onlyPeer();
  const error = caught(() => peers.client(EchoDefinition, peer).behave({ text: 'hang' }));
  await vi.waitFor(() => expect(log.started).toBe(1));
  await reverse.close();
  expect(await error).toMatchObject({ code: Status.UNAVAILABLE });
  await vi.waitFor(() => expect(gone).toHaveBeenCalledWith(peer));
  expect(peers.all).toEqual([]);
});

test('a server that does not support reverse calls causes UNIMPLEMENTED', async () => {
  const plain = createServer();
  const other = createChannel(await plain.listen(`unix:${socketPath()}`));
  const serving = serveReverse(other);
  const error = await caught(() => serving.ready);
  expect(error).toBeInstanceOf(RpcError);
  expect(error.code).toBe(Status.UNIMPLEMENTED);
  await serving.close();
  await other.close();
  await plain.shutdown();
});
