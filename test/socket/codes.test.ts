/** Tests that the errors of sockets have Node's codes. */
import { once } from 'node:events';
import { createServer as createNetServer } from 'node:net';
import { createServer as createRpcServer } from 'rdma-rpc';
import { addSockets, connect, createServer } from 'rdma-rpc/socket';
import { expect, test } from 'vitest';
import { errorOf, listening, pair } from './pair.ts';

test('ECONNREFUSED when no process listens on the address', async () => {
  const sockets = await listening();
  const address = sockets.where!;
  await sockets[Symbol.asyncDispose]();
  const socket = connect(address);
  const [error] = (await once(socket, 'error')) as [
    NodeJS.ErrnoException & { address: string; port: number },
  ];
  expect(error).toMatchObject({ code: 'ECONNREFUSED', syscall: 'connect', address: '127.0.0.1' });
  expect(`127.0.0.1:${error.port}`).toBe(address);
  expect(socket.destroyed).toBe(true);
});

test('ENOENT when the unix socket does not exist', async () => {
  expect(await errorOf(connect('unix:/no/such/socket'))).toBe('ENOENT connect');
});

test('ECONNREFUSED when the server has no sockets service', async () => {
  const server = createRpcServer();
  const socket = connect(await server.listen('127.0.0.1:0'));
  expect(await errorOf(socket)).toBe('ECONNREFUSED connect');
  await server.shutdown();
});

test('EACCES when the server does not allow this client to open sockets', async () => {
  const server = createRpcServer({ authorize: () => false });
  addSockets(server);
  const socket = connect(await server.listen('127.0.0.1:0'));
  expect(await errorOf(socket)).toBe('EACCES connect');
  await server.shutdown();
});

test('ETIMEDOUT when the server does not answer', async () => {
  const silent = createNetServer(() => undefined).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as { port: number };
  for (const options of [{ connectTimeoutMs: 50 }, { channel: { connectTimeoutMs: 50 } }])
    expect(await errorOf(connect({ host: '127.0.0.1', port }, options))).toBe('ETIMEDOUT connect');
  silent.close();
});

test('ECONNRESET when a socket reads and its peer has reset the connection', async () => {
  await using two = await pair();
  const seen = errorOf(two.client);
  two.client.resume();
  two.server.resetAndDestroy();
  expect(await seen).toBe('ECONNRESET read');
});

test('EPIPE when a socket writes after its peer has ended and was destroyed', async () => {
  await using two = await pair({ allowHalfOpen: true });
  two.client.resume();
  two.server.destroy();
  await once(two.client, 'end');
  const seen = errorOf(two.client);
  while (!two.client.destroyed)
    await new Promise<void>((resolve) => two.client.write('x', () => setImmediate(resolve)));
  expect(await seen).toBe('EPIPE write');
});

test('EPIPE when a socket without allowHalfOpen writes after the end of its peer', async () => {
  await using two = await pair();
  two.client.resume();
  two.server.end();
  await once(two.client, 'end');
  const seen = errorOf(two.client);
  expect(two.client.write('x')).toBe(false);
  expect(await seen).toBe('EPIPE');
});

test('ABORT_ERR when the signal is aborted before or after the connection is made', async () => {
  const sockets = await listening();
  const controller = new AbortController();
  const early = connect(sockets.where!, { signal: controller.signal });
  controller.abort();
  expect(await errorOf(early)).toBe('ABORT_ERR');
  const second = new AbortController();
  const late = connect(sockets.where!, { signal: second.signal });
  await once(late, 'connect');
  second.abort();
  expect(await errorOf(late)).toBe('ABORT_ERR');
  await sockets[Symbol.asyncDispose]();
});

test('EADDRINUSE when another server listens on the address', async () => {
  const sockets = await listening();
  const second = createServer().listen(sockets.where!);
  const [error] = (await once(second, 'error')) as [NodeJS.ErrnoException];
  expect(error).toMatchObject({ code: 'EADDRINUSE', syscall: 'listen' });
  second.close();
  await sockets[Symbol.asyncDispose]();
});

test('invalid addresses and options throw', () => {
  expect(() => connect('nowhere')).toThrow(/use 'host:port'/);
  expect(() => connect('a:1', { allowHalfOpne: true } as object)).toThrow(/allowHalfOpen/);
  expect(() => createServer({ pauseOnConnct: true } as object)).toThrow(/pauseOnConnect/);
});
