/**
 * Tests that unauthenticated peers cannot use up the handshakes of a server or the sessions of an address,
 * even if `authenticate` takes long.
 */
import { connect, type Socket } from 'node:net';
import { type ServerOptions, Status } from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { Unadmitted } from '../../runtime/control/handshake/unadmitted.ts';
import { encodeFrame } from '../../runtime/control/link.ts';
import { handshakeQueueFactor } from '../../runtime/limits.ts';
import { hello } from '../control/by-hand.ts';
import { caught, until } from '../outcomes.ts';
import { reach as reached, serveWho } from './ends.ts';

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

interface UnprovedPeer {
  readonly socket: Socket;
  /** The bytes that the server has sent to the peer. */
  said: string;
}

/** Connects and sends these bytes, if any; `from` is the address of the peer. */
function unprovedPeer(address: string, words?: Uint8Array, from = '127.0.0.1'): UnprovedPeer {
  const socket = connect({ port: Number(address.split(':')[1]), host: '127.0.0.1', localAddress: from });
  const one: UnprovedPeer = { socket, said: '' };
  socket
    .on('error', () => undefined)
    .on('data', (bytes) => {
      one.said += bytes.toString('latin1');
    });
  if (words !== undefined) socket.write(words);
  sockets.push(socket);
  return one;
}

const helloFrame = encodeFrame(hello());
const good = { session: () => ({ metadata: { token: 'good' } }), unsealed: true } as const;
const reach = (address: string) => reached(address, { credentials: good }).client;

/** Starts a server whose `authenticate` never resolves for unauthenticated peers. */
async function hanging(options: ServerOptions) {
  const counts = { asked: 0 };
  const served = await serveWho(
    {
      handshakeTimeoutMs: 600_000,
      ...options,
      authenticate: (_, metadata) => {
        if (metadata.get('token') === 'good') return 'known';
        ++counts.asked;
        return new Promise(() => undefined);
      },
    },
    '127.0.0.1:0',
  );
  return { ...served, counts };
}

test('more unauthenticated peers than handshakesMax, for which `authenticate` does not answer, keep no client waiting', async () => {
  const { address } = await hanging({ handshakesMax: 4, sessionsPerPeerMax: 1000 });
  for (let i = 0; i < 4 * (handshakeQueueFactor - 1); ++i) unprovedPeer(address, helloFrame);
  const options = { timeoutMs: 20_000, waitForReady: true };
  expect((await reach(address).echo({}, options)).text).toBe('known');
});

test.each<[string, Uint8Array | undefined]>([
  ['say nothing', undefined],
  ['begin a frame', helloFrame.subarray(0, 9)],
  ['are being asked about', helloFrame],
])(
  'unauthenticated peers of a shared address that %s take none of its sessionsPerPeerMax',
  async (_, words) => {
    const { server, address } = await hanging({ sessionsPerPeerMax: 2 });
    for (let i = 0; i < 10; ++i) unprovedPeer(address, words);
    for (let i = 0; i < 2; ++i) expect((await reach(address).echo({})).text).toBe('known');
    const error = await caught(reach(address).echo({}));
    expect(error).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, processed: 'no' });
    expect(error.message).toMatch(
      /127.0.0.1 has 2 connections already \(option sessionsPerPeerMax of the server\)/,
    );
    expect(server.sessionCount).toBe(2);
  },
);

test.each<[string, ServerOptions, RegExp]>([
  [
    'an address',
    { sessionsPerPeerMax: 1 },
    /127.0.0.1 has more than 1 connections .+ \(option sessionsPerPeerMax/,
  ],
  [
    'the server',
    { handshakesMax: 1 },
    /more than 1 connections wait for `authenticate` \(option handshakesMax/,
  ],
])(
  'of far too many unauthenticated peers of %s the oldest is evicted at once, with the reason',
  async (_, options, why) => {
    const { address, counts } = await hanging(options);
    const first = unprovedPeer(address, helloFrame);
    await until(() => counts.asked === 1);
    for (let i = 0; i < handshakeQueueFactor; ++i) unprovedPeer(address, helloFrame);
    await until(() => first.said !== '');
    expect(first.said).toMatch(why);
    await until(() => counts.asked === 1 + handshakeQueueFactor);
    expect((await reach(address).echo({})).text).toBe('known');
  },
);

test('a peer that was evicted while `authenticate` ran occupies no slot when the answer comes', async () => {
  const answers: (() => void)[] = [];
  const { address } = await serveWho(
    {
      handshakesMax: 1,
      authenticate: (_, metadata) =>
        metadata.get('token') === 'good'
          ? 'known'
          : new Promise((resolve) => answers.push(() => resolve('late'))),
    },
    '127.0.0.1:0',
  );
  for (let i = 0; i < 3; ++i) {
    const gone = unprovedPeer(address, helloFrame);
    await until(() => answers.length === i + 1);
    gone.socket.destroy();
  }
  // The server reads that they have disconnected before it reads the next hello.
  unprovedPeer(address, helloFrame);
  await until(() => answers.length === 4);
  for (const answer of answers.slice(0, 3)) answer();
  expect((await reach(address).echo({}, { timeoutMs: 20_000 })).text).toBe('known');
});

test('each address counts separately, and nothing is kept of closed connections', () => {
  const gone: [number, string][] = [];
  const unproved = new Unadmitted<number>(1, (one, why) => gone.push([one, why]));
  for (let one = 0; one < handshakeQueueFactor; ++one) unproved.begin('10.0.0.1', one);
  unproved.begin('10.0.0.2', 100);
  unproved.begin('', 200);
  expect(gone).toEqual([]);
  unproved.begin('10.0.0.1', 50);
  const why =
    '10.0.0.1 has more than 1 connections that are not admitted yet (option sessionsPerPeerMax of the server)';
  expect(gone).toEqual([[0, why]]);
  // The peer counts among the others while it is being authenticated.
  unproved.ask('10.0.0.1', 50);
  unproved.begin('10.0.0.1', 51);
  expect(gone).toHaveLength(1);
  for (const one of [50, 51, ...Array(handshakeQueueFactor).keys()]) unproved.leave('10.0.0.1', one);
  unproved.leave('10.0.0.2', 100);
  expect(unproved.size).toBe(0);
});
