/**
 * The listener of a worker group accepts connections, and their first bytes identify them. The tests check
 * the result of each kind of first bytes, and the end of a connection that never sends anything.
 */
import type { Socket } from 'node:net';
import { type Duplex, duplexPair } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { UnidentifiedSockets } from '../../runtime/control/handshake/unidentified-sockets.ts';
import { encodeFrame, Link } from '../../runtime/control/link.ts';
import { connectMessageBytes, connectMessageMagic } from '../../runtime/control/socket/handoff.ts';
import { Status } from '../../runtime/core/errors/status.ts';
import { handshakeGraceMs, handshakes, handshakeTimeoutMs } from '../../runtime/limits.ts';
import { turn, until } from '../outcomes.ts';

const ping = encodeFrame({ type: 'ping' });
const tls = Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]);
const connectMessage = Buffer.alloc(connectMessageBytes);
connectMessage.writeUInt32LE(connectMessageMagic, 0);

let passedOn: [Socket, string][];
let lines: string[];
let unidentified: UnidentifiedSockets;

beforeEach(() => {
  passedOn = [];
  lines = [];
  unidentified = new UnidentifiedSockets(
    (socket, peer) => passedOn.push([socket, peer]),
    undefined,
    (line) => lines.push(line),
  );
});
afterEach(() => {
  vi.useRealTimers();
  unidentified.close();
});

/** Returns the client's end of a connection that has just been accepted. */
function arrive(): Duplex {
  const [near, far] = duplexPair();
  unidentified.add(far as Socket, 'a client');
  return near;
}

test('a socket that begins with a frame is passed on unread, however its bytes arrive', async () => {
  const near = arrive();
  for (const byte of ping.subarray(0, 3)) {
    near.write(Buffer.of(byte));
    await turn();
  }
  expect([passedOn, unidentified.count]).toEqual([[], 1]);
  near.write(ping.subarray(3));
  await until(() => passedOn.length > 0);
  const [socket, peer] = passedOn[0]!;
  const heard: Buffer[] = [];
  socket.on('data', (bytes) => heard.push(bytes)).resume();
  near.write(ping);
  await until(() => Buffer.concat(heard).byteLength === 2 * ping.byteLength);
  expect(Buffer.concat(heard)).toEqual(Buffer.concat([ping, ping]));
  expect([peer, unidentified.count, lines]).toEqual(['a client', 0, []]);
  socket.destroy();
});

test.each<[string, Buffer, RegExp]>([
  ['TLS, where there is none', tls, /a TLS handshake, but this server has no TLS/],
  [
    'the connect message of a session, on what has no descriptor',
    connectMessage,
    /there is no descriptor of it/,
  ],
  ['nothing, and its end', Buffer.alloc(0), /the peer closed the connection/],
  ['half of a length, and its end', ping.subarray(0, 2), /the peer closed the connection/],
])('%s ends it, with a line of the log', async (_, bytes, why) => {
  const near = arrive().resume();
  near.end(bytes);
  await until(() => unidentified.count === 0);
  expect(lines).toEqual([expect.stringMatching(/^handshake with a client failed: /)]);
  expect(lines[0]).toMatch(why);
  expect(passedOn).toEqual([]);
});

test('the connect message of a session is not judged before all of it is here', async () => {
  const near = arrive();
  near.write(connectMessage.subarray(0, connectMessageBytes - 1));
  await turn();
  expect([unidentified.count, lines]).toEqual([1, []]);
  near.write(connectMessage.subarray(connectMessageBytes - 1));
  await until(() => unidentified.count === 0);
});

test('a silent socket is refused after its time', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const link = new Link(arrive());
  const refusal = link.receive();
  vi.advanceTimersByTime(handshakeTimeoutMs.default - 1);
  expect(unidentified.count).toBe(1);
  vi.advanceTimersByTime(1);
  const message = `no handshake within ${handshakeTimeoutMs.default} ms`;
  expect(await refusal).toEqual({ type: 'refusal', code: Status.RESOURCE_EXHAUSTED, message });
  expect([unidentified.count, lines]).toEqual([0, [`handshake with a client failed: ${message}`]]);
});

test('when too many are silent the oldest is told when to retry', async () => {
  const [oldest] = Array.from({ length: handshakes.default + 1 }, () => new Link(arrive()));
  const refusal = await oldest!.receive();
  expect(refusal).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, retryMs: handshakeGraceMs });
  expect(unidentified.count).toBe(handshakes.default);
});

test('sockets that are open when the group ends are closed without an answer', async () => {
  const [near, far] = duplexPair();
  unidentified.add(far as Socket, 'a client');
  unidentified.close();
  expect([far.destroyed, unidentified.count]).toEqual([true, 0]);
  await turn();
  expect([near.read(), lines, passedOn]).toEqual([null, [], []]);
});
