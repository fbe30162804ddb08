/**
 * Unauthenticated peers at a port with TLS: silent ones do not evict a client in the middle of its TLS
 * handshake, and a client that is evicted does not get a misleading error.
 */
import { connect, type Server as Listener, createServer as listen, type Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { connect as secureConnect, type TLSSocket } from 'node:tls';
import { createServer, type Server } from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { UnidentifiedSockets } from '../../runtime/control/handshake/unidentified-sockets.ts';
import { TlsAcceptor } from '../../runtime/control/tls/tls-server.ts';
import { handshakeQueueFactor, handshakes } from '../../runtime/limits.ts';
import { until } from '../outcomes.ts';
import { Authority } from './certificates.ts';

const authority = new Authority();
const { cert, key } = authority.issue({ addresses: ['127.0.0.1'] });
const tls = { cert, key };

const sockets: Socket[] = [];
let server: Server | undefined;
let listener: Listener | undefined;
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.shutdown({ graceMs: 0 });
  await new Promise((resolve) => (listener ? listener.close(resolve) : resolve(undefined)));
  server = listener = undefined;
});

function dial(port: number): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.resume();
  sockets.push(socket);
  return socket;
}

/** A client that has sent its ClientHello, has been answered, and reads that when it is told to. */
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

/** Connects `count` times and sends nothing; resolves when `gone` of the connections are closed. */
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
  // Too long for a frame: it is told so.
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

test('of a worker group', async () => {
  const taken: Socket[] = [];
  const unidentified = new UnidentifiedSockets(
    (socket) => taken.push(socket),
    new TlsAcceptor('test', tls, () => undefined),
  );
  let most = 0;
  listener = listen((socket) => {
    unidentified.add(socket, 'a client');
    most = Math.max(most, unidentified.count);
  });
  const { port } = await new Promise<{ port: number }>((resolve) => {
    listener!.listen(0, '127.0.0.1', () => resolve(listener!.address() as { port: number }));
  });
  const client = await halfway(port);
  const max = handshakes.default;
  await silent(port, 4 * max, 3 * max);
  await until(() => unidentified.count === max + 1);
  client.goOn();
  await until(() => taken.length > 0);
  expect(most).toBeLessThanOrEqual(max * handshakeQueueFactor);
  taken[0]?.destroy();
  unidentified.close();
  await until(() => unidentified.count === 0);
});
