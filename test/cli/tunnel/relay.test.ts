/** Tests that through a tunnel, programs see the same events as over TCP. Both ends are in this process. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { dialTo, program, tunnelTo } from './ends.ts';

/** Resolves with the code of the socket's error, or `end` when it closes without one. */
function endOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.once('close', () => resolve('end'));
    socket.resume();
  });
}

test('bytes go both ways, and half-close reaches each side', async () => {
  const echo = await program((socket) => {
    // The server answers only when all data has come. Therefore the client's end must arrive while its
    // reading side stays open. On some versions of Node, buffer() destroys the socket after its last byte.
    const parts: Buffer[] = [];
    socket.on('data', (part: Buffer) => parts.push(part)).on('end', () => socket.end(Buffer.concat(parts)));
  }, true);
  const tunnel = await tunnelTo(echo.address);
  const socket = tunnel.dial({ allowHalfOpen: true });
  const sent = Buffer.alloc(5_000_000, 'a tunnel');
  socket.end(sent);
  expect((await buffer(socket)).equals(sent)).toBe(true);
  expect(tunnel.counts.near).toMatchObject({ sentBytes: sent.length, receivedBytes: sent.length, broken: 0 });
  await tunnel.close();
  await echo.close();
  expect(tunnel.counts.far.open + tunnel.counts.near.open).toBe(0);
});

test('unix sockets at the near end', async () => {
  const hello = await program((socket) => socket.end('hello'));
  const tunnel = await tunnelTo(hello.address, `unix:${join(tmpdir(), `tunnel-${process.pid}`)}`);
  expect(await text(dialTo(tunnel.near.bound))).toBe('hello');
  await tunnel.close();
  await hello.close();
});

test.each(['client', 'server'] as const)('a reset by the %s reaches the other program', async (who) => {
  let onServer: (socket: Socket) => void = () => undefined;
  const accepted = new Promise<Socket>((resolve) => {
    onServer = resolve;
  });
  const far = await program((socket) => onServer(socket));
  const tunnel = await tunnelTo(far.address);
  const client = tunnel.dial();
  client.write('x');
  const server = await accepted;
  const [resets, other] = who === 'client' ? [client, server] : [server, client];
  const seen = endOf(other);
  if (who === 'server') await once(server, 'data');
  resets.resetAndDestroy();
  expect(await seen).toBe('ECONNRESET');
  await tunnel.close();
  await far.close();
});

test('a reset of a half-closed connection is not lost', async () => {
  let onServer: (socket: Socket) => void = () => undefined;
  const accepted = new Promise<Socket>((resolve) => {
    onServer = resolve;
  });
  const far = await program((socket) => onServer(socket), true);
  const tunnel = await tunnelTo(far.address);
  const client = tunnel.dial({ allowHalfOpen: true });
  client.end('x');
  const server = await accepted;
  server.resume();
  await once(server, 'end');
  client.resetAndDestroy();
  // As over TCP, a side that has read the end learns of a reset only when it writes.
  let code = '';
  server.on('error', (error: NodeJS.ErrnoException) => {
    code = error.code ?? '';
  });
  while (!server.destroyed)
    await new Promise<void>((resolve) => server.write('y', () => setImmediate(resolve)));
  expect(code).toMatch(/^(EPIPE|ECONNRESET)$/);
  await tunnel.close();
  await far.close();
});

test('a program that refuses resets the connection', async () => {
  const gone = await program(() => undefined);
  await gone.close();
  const tunnel = await tunnelTo(gone.address);
  const client = tunnel.dial();
  expect(await endOf(client)).toBe('ECONNRESET');
  expect(tunnel.errors).toContain('ECONNREFUSED');
  expect(tunnel.counts.far.refused).toBe(1);
  await tunnel.close();
});

test('a slow reader stops only its own writer', async () => {
  const sockets: Socket[] = [];
  const far = await program((socket) => {
    sockets.push(socket);
    socket.pause();
    socket.write('ready');
  });
  const tunnel = await tunnelTo(far.address);
  const client = tunnel.dial();
  await once(client, 'data');
  const block = Buffer.alloc(1 << 20);
  const total = 64;
  // The writer can only write as much as is buffered on the way.
  let sent = 0;
  const writing = (async () => {
    for (; sent < total; sent++) await new Promise<void>((resolve) => client.write(block, () => resolve()));
    client.end();
  })();
  const other = tunnel.dial();
  for (let i = 0; i < 50; i++) {
    if (i === 0) await once(other, 'data');
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(sent).toBeLessThan(total);
  let received = 0;
  sockets[0]!.on('data', (bytes: Buffer) => {
    received += bytes.length;
  });
  sockets[0]!.resume();
  await once(sockets[0]!, 'end');
  await writing;
  expect(received).toBe(total * block.length);
  await tunnel.close();
  await far.close();
});

test('1,000 connections at once', async () => {
  const echo = await program((socket) => socket.pipe(socket));
  const tunnel = await tunnelTo(echo.address);
  const count = 1_000;
  let open = 0;
  let allOpen: () => void = () => undefined;
  const isOpen = new Promise<void>((resolve) => {
    allOpen = resolve;
  });
  const answers = Array.from({ length: count }, async (_, i) => {
    const socket = tunnel.dial();
    socket.write(`${i}`);
    const [first] = (await once(socket, 'data')) as [Buffer];
    if (++open === count) allOpen();
    await isOpen;
    socket.end();
    await once(socket, 'close');
    return String(first);
  });
  await isOpen;
  expect(tunnel.counts.near.open).toBe(count);
  expect(await Promise.all(answers)).toEqual(Array.from({ length: count }, (_, i) => `${i}`));
  await tunnel.close();
  await echo.close();
  expect(tunnel.counts.near).toMatchObject({ open: 0, accepted: count, refused: 0, broken: 0 });
});
