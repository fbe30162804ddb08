/**
 * Tests features of `node:net` sockets beside their events: timeouts, buffers of the application, counts,
 * cork.
 */
import { once } from 'node:events';
import { createServer as createNetServer, type Socket as NetSocket, connect as netConnect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { createChannel, createClient, createServer as createRpcServer, stats } from 'rdma-rpc';
import { addHealth, HealthDefinition } from 'rdma-rpc/health';
import { addSockets, connect, type Socket } from 'rdma-rpc/socket';
import { expect, test } from 'vitest';
import { until } from '../outcomes.ts';
import { errorOf, listening, pair } from './pair.ts';

test('a socket is async iterable, takes strings, and counts bytes', async () => {
  await using two = await pair();
  two.server.end('grüße');
  let seen = '';
  two.client.setEncoding('utf8');
  for await (const chunk of two.client) seen += chunk;
  expect(seen).toBe('grüße');
  expect(two.client.bytesRead).toBe(7);
  expect(two.server.bytesWritten).toBe(7);
});

test('bytesWritten counts queued bytes, even before the connection is made', async () => {
  const sockets = await listening();
  sockets.on('connection', (socket) => socket.resume());
  const client = connect(sockets.where!);
  client.write('abc');
  client.write('defg');
  expect(client.bytesWritten).toBe(7);
  expect(client.pending).toBe(true);
  expect(client.readyState).toBe('opening');
  await once(client, 'connect');
  expect(client.readyState).toBe('open');
  expect(client.remoteAddress).toBe('127.0.0.1');
  expect(`127.0.0.1:${client.remotePort}`).toBe(sockets.where);
  client.destroy();
  expect(client.readyState).toBe('closed');
  await sockets[Symbol.asyncDispose]();
});

test('the timeout of setTimeout fires only when the socket is idle', async () => {
  await using two = await pair();
  const idle = once(two.client, 'timeout');
  two.client.setTimeout(20);
  await idle;
  expect(two.client.destroyed).toBe(false);
  expect(() => two.client.setTimeout(-1)).toThrow(RangeError);
  two.client.setTimeout(0);
  expect(two.client.timeout).toBe(0);
});

test('a slow reader stops the writer', async () => {
  await using two = await pair();
  const block = Buffer.alloc(1 << 20, 'x');
  let sent = 0;
  const total = 32;
  const writing = (async () => {
    for (; sent < total; sent++)
      await new Promise<void>((resolve) => two.client.write(block, () => resolve()));
    two.client.end();
  })();
  for (let i = 0; i < 200; i++) await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toBeLessThan(total);
  expect((await buffer(two.server)).length).toBe(total * block.length);
  await writing;
});

test('a buffer may be reused once the callback of its write was called', async () => {
  await using two = await pair();
  const received = buffer(two.server);
  for (const size of [10, 20_000, 300_000]) {
    const reused = Buffer.alloc(size);
    for (let i = 0; i < 20; i++) {
      reused.fill(i);
      await new Promise<void>((resolve) => two.client.write(reused, () => resolve()));
      reused.fill(255);
    }
  }
  two.client.end();
  expect((await received).includes(255)).toBe(false);
});

test.each([
  [false, 'at once'],
  [true, 'at once'],
  [false, 'before the connection is made'],
  [true, 'behind another write'],
] as const)(
  'a transferred buffer of a write that has not ended is an error on both sides: writesStay %s, %s',
  async (writesStay, when) => {
    const sockets = await listening();
    const accepted = once(sockets, 'connection') as Promise<[Socket]>;
    const client = connect(sockets.where!, { writesStay });
    const failed = once(client, 'error') as Promise<[Error]>;
    if (when !== 'before the connection is made') await once(client, 'connect');
    const block = new ArrayBuffer(3_000_000);
    if (when === 'behind another write') client.write(Buffer.alloc(3_000_000));
    client.end(new Uint8Array(block));
    structuredClone(block, { transfer: [block] });
    const [server] = await accepted;
    server.resume();
    expect(await errorOf(server)).toBe('ECONNRESET read');
    expect((await failed)[0].message).toMatch(/a written buffer was transferred or resized/);
    await sockets[Symbol.asyncDispose]();
  },
);

/** ArrayBuffers that can be resized, which the types of ES2023 lack. */
const Resizable = ArrayBuffer as unknown as new (
  bytes: number,
  options: { maxByteLength: number },
) => ArrayBuffer & { resize(bytes: number): void };

test.each([1, 2])(
  'a buffer that shrinks behind another write is an error on both sides: %i queued writes',
  async (queued) => {
    const sockets = await listening();
    const accepted = once(sockets, 'connection') as Promise<[Socket]>;
    const client = connect(sockets.where!);
    const failed = once(client, 'error') as Promise<[Error]>;
    await once(client, 'connect');
    const block = new Resizable(10_000, { maxByteLength: 10_000 });
    client.write(Buffer.alloc(3_000_000));
    if (queued === 2) client.write('é');
    client.end(new Uint8Array(block));
    block.resize(5_000);
    const [server] = await accepted;
    server.resume();
    expect(await errorOf(server)).toBe('ECONNRESET read');
    expect((await failed)[0].message).toMatch(/a written buffer was transferred or resized/);
    await sockets[Symbol.asyncDispose]();
  },
);

test('many corked writes travel in one message', async () => {
  await using two = await pair();
  two.client.cork();
  for (let i = 0; i < 100; i++) two.client.write('a');
  two.client.uncork();
  const [first] = (await once(two.server, 'data')) as [Buffer];
  expect(String(first)).toBe('a'.repeat(100));
});

test.each(['node:net', 'ours'])(
  'onread fills the buffer of the application, and stops: %s',
  async (library) => {
    const chunks: string[] = [];
    let go = true;
    const room = Buffer.alloc(4);
    const onread = {
      buffer: room,
      callback: (count: number, bytes: Uint8Array) => {
        chunks.push(String(bytes.subarray(0, count)));
        if (chunks.length === 2) go = false;
        return go;
      },
    };
    const serve = (socket: NetSocket | Socket): void => void socket.end('abcdefghij');
    const net = createNetServer(serve).listen(0, '127.0.0.1');
    await once(net, 'listening');
    const sockets = await listening();
    sockets.on('connection', serve);
    const { port } = net.address() as { port: number };
    const client =
      library === 'ours' ? connect(sockets.where!, { onread }) : netConnect({ port, onread } as never);
    client.resume();
    while (go) await new Promise((resolve) => setImmediate(resolve));
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(chunks).toEqual(['abcd', 'efgh']);
    go = true;
    client.resume();
    await once(client, 'close');
    expect(chunks).toEqual(['abcd', 'efgh', 'ij']);
    net.close();
    await sockets[Symbol.asyncDispose]();
  },
);

test('destroySoon sends everything first', async () => {
  await using two = await pair();
  const received = buffer(two.server);
  two.client.write(Buffer.alloc(100_000));
  two.client.destroySoon();
  expect((await received).length).toBe(100_000);
});

test('sockets and services share a server and a channel of the application', async () => {
  const server = createRpcServer();
  addHealth(server);
  const sockets = addSockets(server, (socket) => void socket.pipe(socket));
  const channel = createChannel(await server.listen('127.0.0.1:0'));
  const client = connect(channel);
  client.end('echo');
  expect(String(await buffer(client))).toBe('echo');
  const { status } = await createClient(HealthDefinition, channel).check({});
  expect(status).toBe(1);
  expect(sockets.connections).toBe(0);
  await channel.close();
  await server.shutdown();
});

test('sealed sessions, identities and authorize apply to sockets as to calls', async () => {
  const server = createRpcServer({
    security: { require: 'sealed' },
    authorize: ({ identity }, method) => identity !== undefined && method === 'rdma_rpc.Sockets/Connect',
  });
  let identity: string | undefined;
  addSockets(server, (socket) => {
    identity = socket.peer?.identity;
    socket.pipe(socket);
  });
  const address = await server.listen(`unix:/tmp/socket-sealed-${process.pid}`);
  const channel = createChannel(address, { security: { require: 'sealed' } });
  const client = connect(channel);
  const sent = Buffer.alloc(200_000, 'sealed');
  client.end(sent);
  expect((await buffer(client)).equals(sent)).toBe(true);
  expect(channel.session?.security).toBe('sealed');
  expect(identity).toBe(`uid:${process.geteuid!()}`);
  await channel.close();
  await server.shutdown();
});

test('connections beyond maxConnections are closed, and close() waits for the open ones', async () => {
  const sockets = await listening();
  sockets.maxConnections = 1;
  const first = connect(sockets.where!);
  await once(first, 'connect');
  const second = connect(sockets.where!);
  await Promise.all([once(sockets, 'drop'), once(second.resume(), 'end')]);
  let closed = false;
  sockets.close(() => {
    closed = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(closed).toBe(false);
  const third = connect(sockets.where!, { channel: {} });
  await once(third, 'error');
  first.end();
  await once(sockets, 'close');
  expect(closed).toBe(true);
});

test('connections leave nothing behind', async () => {
  const sockets = await listening();
  sockets.on('connection', (socket) => socket.resume().end('bye'));
  const channel = createChannel(sockets.where!);
  const one = async (): Promise<void> => {
    const socket = connect(channel);
    socket.end('hello');
    await buffer(socket);
    if (!socket.closed) await once(socket, 'close');
  };
  const batch = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 50) await Promise.all(Array.from({ length: 50 }, one));
  };
  // The server's side of the last connections closes a moment after the client's side.
  const settled = () => until(() => sockets.connections === 0 && channel.session?.callsInFlight === 0);
  await batch(500);
  await settled();
  const before = stats('shm').arenaLeasedBytes;
  await batch(2_000);
  await settled();
  // Memory of earlier tests in this process may be released during this test.
  expect(stats('shm').arenaLeasedBytes).toBeLessThanOrEqual(before);
  await channel.close();
  await sockets[Symbol.asyncDispose]();
});
