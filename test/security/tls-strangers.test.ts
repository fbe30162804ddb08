/**
 * Tests unauthenticated peers at a port with TLS: silent peers do not evict a client in the middle of its TLS
 * handshake, and a client that is evicted does not get a misleading error.
 */
import { connect, type Server as Listener, createServer as listen, type Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { connect as secureConnect, type TLSSocket } from 'node:tls';
import { createServer, type Server } from 'rdma-rpc';
import { afterEach, expect, test, vi } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { UnidentifiedSockets } from '../../runtime/control/handshake/unidentified-sockets.ts';
import { TlsAcceptor } from '../../runtime/control/tls/tls-server.ts';
import { handshakeQueueFactor, handshakes, suspectTlsApartMs } from '../../runtime/limits.ts';
import { turn, until } from '../outcomes.ts';
import { Authority } from './certificates.ts';

const authority = new Authority();
const { cert, key } = authority.issue({ addresses: ['127.0.0.1'] });
const tls = { cert, key };

const sockets: Socket[] = [];
let server: Server | undefined;
let listener: Listener | undefined;
let unidentified: UnidentifiedSockets | undefined;
afterEach(async () => {
  replaceClock(undefined);
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.shutdown({ graceMs: 0 });
  unidentified?.close();
  await new Promise((resolve) => (listener ? listener.close(resolve) : resolve(undefined)));
  server = listener = unidentified = undefined;
});

function dial(port: number, localAddress = '127.0.0.1'): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  socket.resume();
  sockets.push(socket);
  return socket;
}

/**
 * Connects a client that has sent its ClientHello and has been answered. The client reads the answer when the
 * test tells it to.
 */
async function halfway(port: number): Promise<{ goOn(): TLSSocket }> {
  const [near, far] = duplexPair();
  const socket = dial(port).pause();
  const secured = secureConnect({ socket: near, ca: authority.ca, host: '127.0.0.1' });
  secured.on('error', () => undefined);
  far.pipe(socket);
  let answered = false;
  socket.once('readable', () => {
    answered = true;
  });
  await until(() => answered);
  socket.removeAllListeners('readable');
  return {
    goOn: () => {
      socket.pipe(far);
      return secured;
    },
  };
}

/** Connects `count` times and sends nothing. Resolves when `gone` of the connections are closed. */
async function silent(port: number, count: number, gone: number): Promise<void> {
  const all = Array.from({ length: count }, () => dial(port));
  await until(() => all.filter(({ destroyed }) => destroyed).length >= gone);
}

test('of a server', async () => {
  server = createServer({ tls, handshakesMax: 16, sessionsPerPeerMax: 1000 });
  const port = Number((await server.listen('127.0.0.1:0')).split(':')[1]);
  const client = await halfway(port);
  await silent(port, 100, 84);
  const secured = client.goOn();
  // The frame is too long, and the peer gets an error.
  secured.write(Buffer.alloc(4, 0xff));
  const answer = new Promise<string>((resolve, reject) => {
    secured.once('data', (bytes: Buffer) => resolve(bytes.toString('latin1')));
    secured.once('end', () => reject(new Error('it was sent away')));
  });
  expect(await answer).toMatch(/received a frame of 4294967295 bytes/);
});

test.each<[string, (port: number) => void]>([
  ['pushed out', (port) => void dial(port)],
  ['there when the server goes', () => void server?.shutdown({ graceMs: 0 })],
])(
  'who is %s before a word hears none that is not TLS: it would pass for a server without',
  async (_, go) => {
    server = createServer({ tls, handshakesMax: 1, log: () => undefined });
    const port = Number((await server.listen('127.0.0.1:0')).split(':')[1]);
    const heard: Buffer[] = [];
    const first = dial(port).on('data', (bytes) => heard.push(bytes));
    await until(() => server!.sessionCount === 0 && first.readyState === 'open');
    go(port);
    await until(() => first.destroyed);
    expect(Buffer.concat(heard).toString('latin1')).toBe('');
  },
);

/** Listens as a worker group does, and returns the port. */
async function listenAsGroup(group: UnidentifiedSockets, added?: () => void): Promise<number> {
  unidentified = group;
  listener = listen((socket) => {
    group.add(socket, 'a client');
    added?.();
  });
  const { port } = await new Promise<{ port: number }>((resolve) => {
    listener!.listen(0, '127.0.0.1', () => resolve(listener!.address() as { port: number }));
  });
  return port;
}

test('of a worker group', async () => {
  const taken: Socket[] = [];
  const group = new UnidentifiedSockets(
    (socket) => taken.push(socket),
    new TlsAcceptor('test', tls, () => undefined),
  );
  let most = 0;
  const port = await listenAsGroup(group, () => {
    most = Math.max(most, group.count);
  });
  const client = await halfway(port);
  const max = handshakes.default;
  await silent(port, 4 * max, 3 * max);
  await until(() => group.count === max + 1);
  client.goOn();
  await until(() => taken.length > 0);
  expect(most).toBeLessThanOrEqual(max * handshakeQueueFactor);
  taken[0]?.destroy();
  group.close();
  await until(() => group.count === 0);
});

/** Resolves to the first bytes of a TLS client. */
async function clientHello(): Promise<Buffer> {
  const [near, far] = duplexPair();
  const secured = secureConnect({ socket: near, host: '127.0.0.1' });
  secured.on('error', () => undefined);
  const bytes = await new Promise<Buffer>((resolve) => far.once('data', resolve));
  secured.destroy();
  return bytes;
}

test.each<[string, (failed: () => void) => Promise<number>]>([
  [
    'a server',
    async (failed) => {
      server = createServer({ tls, log: failed });
      return Number((await server.listen('127.0.0.1:0')).split(':')[1]);
    },
  ],
  [
    'a worker group',
    async (failed) => {
      const acceptor = new TlsAcceptor('test', tls, () => undefined);
      return await listenAsGroup(new UnidentifiedSockets((socket) => socket.destroy(), acceptor, failed));
    },
  ],
])(
  'an address whose TLS handshakes fail gets few signatures of %s, and keeps out no other address',
  async (_, serve) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    replaceClock(() => performance.now());
    let failed = 0;
    const port = await serve(() => void ++failed);
    const hello = await clientHello();
    const answered: Socket[] = [];
    /** Sends one ClientHello. The answer begins with the server's signature, and no further bytes follow. */
    const failing = (): Socket => {
      const socket = dial(port, '127.1.0.1');
      socket.write(hello);
      return socket.once('data', () => answered.push(socket));
    };
    const first = failing();
    await until(() => answered.length === 1);
    first.destroy();
    await until(() => failed === 1);
    await turn();
    for (let i = 0; i < 20; ++i) failing();
    await until(() => answered.length === 2);
    const client = secureConnect({ port, host: '127.0.0.1', ca: authority.ca });
    sockets.push(client);
    await new Promise((resolve, reject) => client.on('secureConnect', resolve).on('error', reject));
    expect(answered).toHaveLength(2);
    for (let expected = 3; expected <= 5; ++expected) {
      vi.advanceTimersByTime(suspectTlsApartMs - 1);
      await turn();
      expect(answered).toHaveLength(expected - 1);
      vi.advanceTimersByTime(1);
      await until(() => answered.length === expected);
    }
  },
);

test('a client without a trusted certificate counts as failed at a worker group, too', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  replaceClock(() => performance.now());
  let passedOn = 0;
  const acceptor = new TlsAcceptor('test', { ...tls, ca: authority.ca }, () => undefined);
  const port = await listenAsGroup(new UnidentifiedSockets(() => void ++passedOn, acceptor));
  const come = (localAddress: string): void => {
    sockets.push(secureConnect({ socket: dial(port, localAddress), ca: authority.ca, host: '127.0.0.1' }));
  };
  come('127.1.0.1');
  await until(() => passedOn === 1);
  for (let i = 0; i < 3; ++i) come('127.1.0.1');
  await until(() => passedOn >= 2);
  come('127.0.0.1');
  await until(() => passedOn >= 3);
  await turn();
  expect([passedOn, unidentified?.count]).toEqual([3, 2]);
});
