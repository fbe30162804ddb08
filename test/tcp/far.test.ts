/**
 * Tests distant clients beside unauthenticated peers that begin a handshake and do not continue it. A client
 * that makes progress connects, with any reasonable round-trip time, and independent of the step at which the
 * other peers stop.
 */
import { connect, type Socket } from 'node:net';
import { createChannel, createClient, createServer, type Server, type ServerOptions } from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { discardSession, prepareSession } from '../../runtime/control/handshake/session-setup.ts';
import { hostIdentity } from '../../runtime/control/host.ts';
import { encodeFrame, Link } from '../../runtime/control/link.ts';
import { hello, limits, side } from '../control/by-hand.ts';
import { until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { portOf, Relay } from './proxy.ts';

/**
 * Three round trips are longer than the time that a stalled handshake gets (handshakeStallMs), and one is
 * shorter, also on a busy machine.
 */
const roundTripMs = 200;
const peersMax = 200;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function serve(options: ServerOptions = {}): Promise<{ server: Server; address: string }> {
  // Nearly all of them have the same address here.
  const server = createServer({
    fabric: 'tcp',
    sessionsPerPeerMax: 1000,
    log: () => undefined,
    ...options,
  }).add(EchoDefinition, { echo: (request) => request });
  closing.push(() => server.shutdown({ graceMs: 0 }));
  return { server, address: await server.listen('127.0.0.1:0') };
}

/**
 * Makes unauthenticated peers that reconnect whenever they are rejected, and perform the handshake as far as
 * `talk` does. Resolves when some have been rejected.
 */
async function surround(
  address: string,
  talk: (socket: Socket) => void,
  from: (number: number) => string = () => '127.0.0.1',
): Promise<void> {
  let over = false;
  let sentAway = 0;
  const open = new Set<Socket>();
  const come = (number: number): void => {
    if (over) return;
    const socket = connect({ port: portOf(address), host: '127.0.0.1', localAddress: from(number) });
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      open.delete(socket);
      ++sentAway;
      setImmediate(() => come(number));
    });
    talk(socket);
  };
  closing.push(() => {
    over = true;
    for (const socket of open) socket.destroy();
  });
  for (let i = 0; i < peersMax; ++i) come(i);
  await until(() => sentAway > peersMax / 2);
}

async function getsIn(address: string): Promise<void> {
  const relay = new Relay(() => portOf(address), undefined, roundTripMs);
  closing.push(() => relay.close());
  const channel = createChannel(await relay.listen(), { fabric: 'tcp' });
  closing.push(() => channel.close());
  await channel.ready();
}

const fabrics = [{ name: 'tcp', host: hostIdentity() }];

test('unauthenticated peers that only send hello keep out no distant client', async () => {
  const { address } = await serve();
  await surround(address, (socket) => {
    socket.resume().write(encodeFrame(hello({ fabrics })));
  });
  await Promise.all([getsIn(address), getsIn(address), getsIn(address)]);
});

/** Returns the conversation of an unauthenticated peer that attaches and never makes its data connection. */
function attaching(): (socket: Socket) => void {
  const own = prepareSession({ ...side, fabrics: ['tcp'] }, 'tcp', limits, limits, 0, { protection: 'none' });
  closing.push(() => discardSession(own, 'done'));
  const blob = own.context.native.sessionAddress(own.target.session);
  return (socket) => {
    const link = new Link(socket);
    link.send(hello({ fabrics }));
    link
      .receive()
      .then(() => link.send({ type: 'attach', fabric: 'tcp', address: blob }))
      .catch(() => undefined);
  };
}

test('unauthenticated peers that attach and never make their data connection keep out no distant client', async () => {
  const { address } = await serve();
  await surround(address, attaching());
  await Promise.all([getsIn(address), getsIn(address), getsIn(address)]);
});

test('unauthenticated peers that retry from many addresses, up to an attach, keep out no new client', async () => {
  // More peers connect than can have a position, continue without a position, and be queued.
  const { address } = await serve({ handshakesMax: 4, sessionsMax: 32 });
  await surround(address, attaching(), (number) => `127.0.1.${1 + number}`);
  for (let number = 0; number < 3; ++number) {
    // On a busy machine, the peers of this process and the client need more than the default of 5 s.
    const channel = createChannel(address, { fabric: 'tcp', connectTimeoutMs: 60_000 });
    closing.push(() => channel.close());
    // The call does not wait for a server, so a refusal would end it.
    expect(await createClient(EchoDefinition, channel).echo({ number })).toMatchObject({ number });
  }
});
