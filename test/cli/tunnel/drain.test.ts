/**
 * When an end of a tunnel drains, its open connections continue. Each connection ends when its programs end
 * it, with all bytes, whichever program ends its side first. An end that must not wait resets its
 * connections.
 */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
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
