/**
 * Clients that are far away, beside strangers who begin a handshake and do not go on with it: a client that
 * makes progress gets in, however long its round trips are within reason, and whatever step the strangers
 * stop at.
 */
import { connect, type Socket } from 'node:net';
import { createChannel, createServer, type Server } from 'rdma-rpc';
import { afterEach, test } from 'vitest';
import { discardSession, prepareSession } from '../../runtime/control/handshake/session-setup.ts';
import { hostIdentity } from '../../runtime/control/host.ts';
import { encodeFrame, Link } from '../../runtime/control/link.ts';
import { hello, limits, side } from '../control/by-hand.ts';
import { until } from '../outcomes.ts';
import { portOf, Relay } from './proxy.ts';

/**
 * Three of them are more than a stalled handshake is given (handshakeStallMs), and one is less, on a busy
 * machine too.
 */
const roundTripMs = 200;
const strangers = 200;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function serve(): Promise<{ server: Server; address: string }> {
  // All of them come from one address here.
  const server = createServer({ fabric: 'tcp', sessionsPerPeerMax: 1000, log: () => undefined });
  closing.push(() => server.shutdown({ graceMs: 0 }));
  return { server, address: await server.listen('127.0.0.1:0') };
}

/**
 * Strangers who come again whenever they are sent away, and go as far as `talk` does. Resolves when some have
 * been sent away.
 */
async function surround(address: string, talk: (socket: Socket) => void): Promise<void> {
  let over = false;
  let sentAway = 0;
  const open = new Set<Socket>();
  const come = (): void => {
    if (over) return;
    const socket = connect(portOf(address), '127.0.0.1');
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      open.delete(socket);
      ++sentAway;
      setImmediate(come);
    });
    talk(socket);
  };
  closing.push(() => {
    over = true;
    for (const socket of open) socket.destroy();
  });
  for (let i = 0; i < strangers; ++i) come();
  await until(() => sentAway > strangers / 2);
}

async function getsIn(address: string): Promise<void> {
  const relay = new Relay(() => portOf(address), undefined, roundTripMs);
  closing.push(() => relay.close());
  const channel = createChannel(await relay.listen(), { fabric: 'tcp' });
  closing.push(() => channel.close());
  await channel.ready();
}

const fabrics = [{ name: 'tcp', host: hostIdentity() }];

test('strangers who say hello and no more keep out nobody who is far away', async () => {
  const { address } = await serve();
  await surround(address, (socket) => {
    socket.resume().write(encodeFrame(hello({ fabrics })));
  });
  await Promise.all([getsIn(address), getsIn(address), getsIn(address)]);
});

test('nor do strangers who attach and never make their connection for data', async () => {
  const { address } = await serve();
  const own = prepareSession({ ...side, fabrics: ['tcp'] }, 'tcp', limits, limits, 0, { guard: 'none' });
  closing.push(() => discardSession(own, 'done'));
  const blob = own.context.native.sessionAddress(own.target.session);
  await surround(address, (socket) => {
    const link = new Link(socket);
    link.send(hello({ fabrics }));
    link
      .receive()
      .then(() => link.send({ type: 'attach', fabric: 'tcp', address: blob }))
      .catch(() => undefined);
  });
  await Promise.all([getsIn(address), getsIn(address), getsIn(address)]);
});
