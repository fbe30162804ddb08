/**
 * When an end of a tunnel drains, its open connections continue. Each connection ends when its programs end
 * it, with all bytes, independent of which program ends its side first. An end that must not wait resets its
 * connections.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { program, tunnelTo } from './ends.ts';

const bytes = Buffer.alloc(3_000_000, 'the last bytes');

test.each([
  ['near', 'client'],
  ['near', 'server'],
  ['far', 'client'],
  ['far', 'server'],
] as const)('the %s end drains, and the %s ends last, after many bytes', async (end, last) => {
  let onServer: (socket: Socket) => void = () => undefined;
  const accepted = new Promise<Socket>((resolve) => {
    onServer = resolve;
  });
  const behind = await program((socket) => onServer(socket), true);
  const tunnel = await tunnelTo(behind.address);
  const client = tunnel.dial({ allowHalfOpen: true });
  client.write('x');
  const server = await accepted;
  await once(server, 'data');
  const drained = tunnel[end].drain();
  const [first, second] = last === 'client' ? [server, client] : [client, server];
  second.resume();
  first.end();
  await once(second, 'end');
  const received = buffer(first);
  second.end(bytes);
  expect((await received).equals(bytes)).toBe(true);
  await drained;
  await tunnel.close();
  await behind.close();
  expect(tunnel.errors).toEqual([]);
  expect([tunnel.counts.near.broken, tunnel.counts.far.broken]).toEqual([0, 0]);
});

test.each(['near', 'far'] as const)('the %s end resets its connections', async (end) => {
  let onServer: (socket: Socket) => void = () => undefined;
  const accepted = new Promise<Socket>((resolve) => {
    onServer = resolve;
  });
  const behind = await program((socket) => onServer(socket));
  const tunnel = await tunnelTo(behind.address);
  const client = tunnel.dial();
  client.write('half a message');
  const server = await accepted;
  await once(server, 'data');
  const seen = [client, server].map((socket) => once(socket.resume(), 'end').then(() => 'end', String));
  tunnel[end].destroy();
  expect(await Promise.all(seen)).toEqual(seen.map(() => 'Error: read ECONNRESET'));
  await tunnel.close();
  await behind.close();
});

test('while a near end drains, another one can listen at its unix path', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tunnel-drain-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = `unix:${join(folder, 'near')}`;
  const echo = await program((socket) => socket.pipe(socket));
  const tunnel = await tunnelTo(echo.address, path);
  const client = tunnel.dial();
  client.write('before');
  await once(client, 'data');
  const drained = tunnel.near.drain();
  const next = await tunnelTo(echo.address, path);
  const late = next.dial();
  late.write('after');
  expect(String((await once(late, 'data'))[0])).toBe('after');
  client.end();
  await drained;
  // The end that has drained has left the path to its successor.
  expect(await text(next.dial().end('last'))).toBe('last');
  late.end();
  for (const each of [tunnel, next]) await each.close();
  await echo.close();
});
