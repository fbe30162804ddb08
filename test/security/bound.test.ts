/**
 * Tests `bound`: queue pairs belong to the peer of their handshake. The tests have attackers who have stolen,
 * changed or replayed a part of a handshake. The tests also check the requirements that a side may have.
 */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { createServer as listenSecure, connect as secureConnect, type TLSSocket } from 'node:tls';
import { type ChannelOptions, createInProcessChannel, type ServerOptions, Status, stats } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { type Attach, type Attached, type Frame, feature, version } from '../../runtime/control/frames.ts';
import {
  bindingOf as agreedOf,
  Binding,
  type BoundAttempt,
  bindingOffer,
  tlsSecretOf,
} from '../../runtime/control/handshake/binding.ts';
import { discardSession, prepareSession } from '../../runtime/control/handshake/session-setup.ts';
import { hostIdentity } from '../../runtime/control/host.ts';
import { Link } from '../../runtime/control/link.ts';
import { connectMessageBytes, connectMessageMagic } from '../../runtime/control/socket/handoff.ts';
import { hello, limits, side } from '../control/by-hand.ts';
import { caught, until } from '../outcomes.ts';
import { Authority, pems } from './certificates.ts';
import { ends, reach, serve, unixAddress } from './ends.ts';

const authority = new Authority();
const { ca } = authority;
const serverCert = pems(authority.issue({ names: ['localhost'], addresses: ['127.0.0.1'] }));
const clientCert = pems(authority.issue({ uris: ['spiffe://example.org/web'] }));
const fabric = ['shm', 'tcp'] as const;
const fabrics = fabric.map((name) => ({ name, host: hostIdentity() }));

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

const secureServer = (options: ServerOptions = {}) =>
  serve({ tls: { ...serverCert, ca }, fabric, ...options }, '127.0.0.1:0');
const portOf = (address: string): number => Number(address.split(':')[1]);

/** Connects a client within TLS. A test sends the client's frames one by one. */
async function script(address: string): Promise<Link> {
  const socket = secureConnect({ host: '127.0.0.1', port: portOf(address), ca, ...clientCert });
  closers.push(() => socket.destroy());
  await new Promise((resolve) => socket.once('secureConnect', resolve));
  return new Link(socket);
}

const bindingOf = (link: Link, opening = link.takeOpening()): Binding =>
  new Binding(tlsSecretOf(link.duplex)!, opening);

const helloWith = (changes: object = {}): Frame => hello({ features: feature.bound, fabrics, ...changes });

/** Connects up to the welcome. */
async function begun(address: string, first: Frame = helloWith()): Promise<{ link: Link; binding: Binding }> {
  const link = await script(address);
  link.send(first);
  expect(await link.receive()).toMatchObject({ type: 'welcome' });
  return { link, binding: bindingOf(link) };
}

const someAddress = randomBytes(44);
const attach = (proof: Uint8Array | undefined, changes: Partial<Attach> = {}): Attach => ({
  type: 'attach',
  fabric: 'shm',
  address: someAddress,
  ...(proof !== undefined && { proof }),
  ...changes,
});
const proved = (bound: BoundAttempt, changes: Partial<Attach> = {}): Attach =>
  attach(bound.attach(someAddress), changes);

describe('a client is refused, and no queue pair stays, that', () => {
  test.each<[string, (address: string) => Promise<Link>]>([
    [
      'proves nothing',
      async (address) => {
        const { link } = await begun(address);
        link.send(attach(undefined));
        return link;
      },
    ],
    [
      'guesses a proof',
      async (address) => {
        const { link } = await begun(address);
        link.send(attach(randomBytes(32)));
        return link;
      },
    ],
    [
      'has the proof of another session',
      async (address) => {
        const { binding, link: other } = await begun(address);
        const { link } = await begun(address);
        other.close('it is over');
        link.send(proved(binding.attempt(0, 'shm')));
        return link;
      },
    ],
    [
      'replays hello and attach of another session, to the byte',
      async (address) => {
        const first = helloWith();
        const { binding, link: other } = await begun(address, first);
        const { link } = await begun(address, first);
        other.close('it is over');
        link.send(proved(binding.attempt(0, 'shm')));
        return link;
      },
    ],
    [
      'has swapped the queue pair',
      async (address) => {
        const { link, binding } = await begun(address);
        link.send(proved(binding.attempt(0, 'shm'), { address: randomBytes(44) }));
        return link;
      },
    ],
    [
      'has swapped the fabric',
      async (address) => {
        const { link, binding } = await begun(address);
        link.send(proved(binding.attempt(0, 'shm'), { fabric: 'tcp' }));
        return link;
      },
    ],
    [
      'has used that proof before',
      async (address) => {
        const { link, binding } = await begun(address);
        const used = attach(binding.attempt(0, 'shm').attach(someAddress));
        link.send(used);
        expect(await link.receive()).toMatchObject({ type: 'unreachable' });
        link.send(used);
        return link;
      },
    ],
    [
      'has seen another hello: a fabric was taken out on the way',
      async (address) => {
        const link = await script(address);
        link.send(helloWith({ fabrics: fabrics.slice(0, 1) }));
        expect(await link.receive()).toMatchObject({ type: 'welcome' });
        const [sent, welcome] = link.takeOpening();
        const whole = Buffer.concat([sent!, Buffer.from('tcp')]);
        link.send(proved(bindingOf(link, [whole, welcome!]).attempt(0, 'shm')));
        return link;
      },
    ],
    [
      'has seen another welcome: a byte was added to it on the way',
      async (address) => {
        const link = await script(address);
        link.send(helloWith());
        expect(await link.receive()).toMatchObject({ type: 'welcome' });
        const [sent, welcome] = link.takeOpening();
        const changed = Buffer.concat([welcome!, Buffer.of(0)]);
        link.send(proved(bindingOf(link, [sent!, changed]).attempt(0, 'shm')));
        return link;
      },
    ],
    [
      'has lost its feature bit on the way',
      async (address) => {
        const link = await script(address);
        link.send(helloWith({ features: 0 }));
        return link;
      },
    ],
  ])('%s', async (_, attack) => {
    const { server, lines, address } = await secureServer();
    const link = await attack(address);
    expect(await link.receive()).toMatchObject({ type: 'refusal', code: Status.UNAUTHENTICATED });
    expect(server.sessionCount).toBe(0);
    await until(() => stats().queuePairs === 0);
    expect(lines.join()).toMatch(/not proved to come from|both sides must prove/);
  });
});

test('a trusted party in the middle cannot relay a handshake', async () => {
  const { server, lines, address } = await secureServer();
  const between = listenSecure({ ...serverCert, ca, requestCert: true }, (near) => {
    const far = secureConnect({ host: '127.0.0.1', port: portOf(address), ca, ...clientCert });
    for (const socket of [near, far]) socket.on('error', () => undefined);
    near.pipe(far).pipe(near);
  });
  closers.push(() => between.close());
  await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve));
  const { port } = between.address() as { port: number };
  const error = await caught(
    reach(`127.0.0.1:${port}`, { tls: { ca, ...clientCert }, fabric }).client.echo({}),
  );
  expect([error.code, error.processed]).toEqual([Status.UNAUTHENTICATED, 'no']);
  expect(lines.join()).toMatch(/the queue pair of the client is not proved to come from the peer/);
  expect(server.sessionCount).toBe(0);
});

describe('a client refuses a server that', () => {
  /** Starts a server whose answers a test makes by hand. */
  async function lying(answer: (attach: Attach, binding: Binding) => Attached, features: number) {
    const sockets: TLSSocket[] = [];
    const listener = listenSecure(serverCert, async (socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      const link = new Link(socket);
      await link.receive();
      link.send({ type: 'welcome', version, features, limits, fabrics: ['shm'], identity: 'liar' });
      const binding = bindingOf(link);
      const frame = await link.receive().catch(() => undefined);
      if (frame?.type === 'attach') link.send(answer(frame, binding));
    });
    closers.push(() => {
      for (const socket of sockets) socket.destroy();
      listener.close();
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    return `127.0.0.1:${(listener.address() as { port: number }).port}`;
  }

  test.each<[string, (attach: Attach, binding: Binding) => Attached, number]>([
    ['proves nothing', () => ({ type: 'attached', address: someAddress }), feature.bound],
    [
      'sends the proof of the client back',
      ({ proof }) => ({ type: 'attached', address: someAddress, proof: proof! }),
      feature.bound,
    ],
    [
      'has swapped the queue pair',
      ({ address }, binding) => {
        const proof = binding.attempt(0, 'shm').attached(address, someAddress);
        return { type: 'attached', address: randomBytes(44), proof };
      },
      feature.bound,
    ],
    ['has lost its feature bit on the way', () => ({ type: 'attached', address: someAddress }), 0],
  ])('%s', async (_, answer, features) => {
    const address = await lying(answer, features);
    const error = await caught(
      reach(address, { tls: { ca }, fabric: 'shm', inflightMax: 4 }).client.echo({}),
    );
    expect([error.code, error.processed]).toEqual([Status.UNAUTHENTICATED, 'no']);
    expect(error.message).toMatch(/not proved to come from the peer|both sides must prove/);
    await until(() => stats().queuePairs === 0);
  });
});

test('a thief of both tokens of a tcp connection is rejected, and the client still connects', async () => {
  const { server, address } = await secureServer({ fabric: 'tcp' });
  const { link, binding } = await begun(address);
  const bound = binding.attempt(0, 'tcp');
  const prepared = prepareSession({ ...side, fabrics: ['tcp'] }, 'tcp', limits, limits, 0, {
    protection: 'bound',
  });
  closers.push(() => discardSession(prepared, 'the test is over'));
  const own = prepared.context.native.sessionAddress(prepared.target.session);
  link.send({ type: 'attach', fabric: 'tcp', address: own, proof: bound.attach(own) });
  const answer = (await link.receive()) as Attached;
  expect(answer).toMatchObject({ type: 'attached', proof: bound.attached(own, answer.address) });

  const tokenOf = (blob: Uint8Array) => blob.subarray(24, 40);
  const comes = async (from: Uint8Array): Promise<{ said: number; from: Buffer }> => {
    const socket: Socket = connect(portOf(address), '127.0.0.1');
    closers.push(() => socket.destroy());
    const connectMessage = Buffer.alloc(connectMessageBytes);
    connectMessage.writeUInt32LE(connectMessageMagic, 0);
    connectMessage.set([1, 1], 4);
    connectMessage.set(tokenOf(answer.address), 8);
    connectMessage.set(from, 24);
    socket.write(connectMessage);
    const bytes: Buffer = await new Promise((resolve) => socket.once('data', resolve));
    return { said: bytes[5]!, from: bytes.subarray(24, 40) };
  };
  const words = bound.setupWords('client', own, answer.address);
  expect((await comes(tokenOf(own))).said).toBe(4);
  expect((await comes(words.subarray(16))).said).toBe(4);
  expect(server.sessionCount).toBe(1);
  // The answer also contains a proof.
  expect(await comes(words.subarray(0, 16))).toEqual({ said: 2, from: words.subarray(16) });
});

describe('a key that is missing is never replaced', () => {
  const opening = [randomBytes(8), randomBytes(8)];
  const bound = { features: feature.bound };
  /** Returns a connection with the properties that a binding uses. */
  const duplexOf = (transport: string, tlsSecret?: Uint8Array) =>
    ({ verified: { transport }, tlsSecret }) as unknown as Link['duplex'];

  test('the key of TLS is read once, so the loss of a connection changes nothing', () => {
    const tlsSecret = randomBytes(32);
    const offer = bindingOffer(duplexOf('tls', tlsSecret));
    const proof = agreedOf(offer, bound, bound, opening)!.attempt(0, 'tcp').attach(someAddress);
    expect(proof).toEqual(new Binding(tlsSecret, opening).attempt(0, 'tcp').attach(someAddress));
  });

  test('without the key of TLS there is an error, whatever the two sides claim about halves', () => {
    const halves = { ...bound, secret: randomBytes(32) };
    expect(bindingOffer(duplexOf('tls'))).toEqual({ tls: true, features: 0 });
    expect(() => agreedOf({ tls: true, features: 0 }, halves, halves, opening)).toThrow(
      expect.objectContaining({
        code: Status.UNAUTHENTICATED,
        message: expect.stringMatching(/key of this TLS/),
      }),
    );
  });

  test('without one half there is no binding, where that is allowed', () => {
    const half = { ...bound, secret: randomBytes(32) };
    const duplex = duplexOf('unix');
    expect(agreedOf(bindingOffer(duplex), half, bound, opening)).toBeUndefined();
    expect(agreedOf(bindingOffer(duplex), half, half, opening)).toBeInstanceOf(Binding);
  });
});

describe('a session is bound', () => {
  test.each<[string, ServerOptions, ChannelOptions, () => string]>([
    ['by TLS', { tls: serverCert }, { tls: { ca } }, () => '127.0.0.1:0'],
    ['over a unix socket, shared memory', { fabric: 'shm' }, { fabric: 'shm' }, unixAddress],
    ['over a unix socket, by descriptors', { fabric: 'shm-fd' }, { fabric: 'shm-fd' }, unixAddress],
  ])('%s, when either side requires it', async (_, ofServer, ofChannel, at) => {
    const security = { require: 'bound' } as const;
    const { server, address } = await serve({ ...ofServer, security }, at());
    const { channel, client } = reach(address, { ...ofChannel, security });
    await client.echo({ payload: new Uint8Array(1 << 20) });
    await until(() => server.sessions.length > 0);
    expect([channel.session?.security, server.sessions[0]?.security]).toEqual(['bound', 'bound']);
  });

  test('within a process', async () => {
    const channel = createInProcessChannel(() => undefined, { security: { require: 'bound' } });
    ends.channels.push(channel);
    await channel.ready();
    expect(channel.session?.security).toBe('bound');
  });
});

describe('a session with a lower level than required is refused', () => {
  test.each<[string, ServerOptions, ChannelOptions, RegExp]>([
    [
      'by the server, without TLS',
      { security: { require: 'bound' } },
      {},
      /'none', and the server requires 'bound' .*: queue pairs can only be bound where the handshake is private/,
    ],
    [
      'by the client, without TLS',
      {},
      { security: { require: 'bound' } },
      /'none', and the client requires 'bound'/,
    ],
    [
      'by the server, when the client has no certificate',
      { tls: serverCert, security: { require: 'peer' } },
      { tls: { ca } },
      /'none', and the server requires 'peer'/,
    ],
    [
      'by the client, when the server is anybody',
      { tls: serverCert },
      { tls: { rejectUnauthorized: false }, security: { require: 'bound' } },
      /'none', and the client requires 'bound' .*: the other side has to be verified: use tls with certificates/,
    ],
  ])('%s', async (_, ofServer, ofChannel, told) => {
    const { server, address } = await serve({ fabric, ...ofServer }, '127.0.0.1:0');
    const error = await caught(reach(address, { fabric, ...ofChannel }).client.echo({}));
    expect([error.code, error.processed]).toEqual([Status.FAILED_PRECONDITION, 'no']);
    expect(error.message).toMatch(told);
    expect(server.sessionCount).toBe(0);
    await until(() => stats().queuePairs === 0);
  });
});
