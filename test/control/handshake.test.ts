/**
 * Tests the admission of connections by a server: hostile, silent, foreign and too many clients. The tests
 * also check the error of a client when the server is of another kind.
 */
import { connect, createServer as listen, type Server as NetServer, type Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import {
  type Channel,
  createChannel,
  createClient,
  createServer,
  RpcError,
  type ServerOptions,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { acquireContext, releaseContext, setContextOptions } from '../../runtime/boundary/contexts.ts';
import { type Frame, ownFeatures, version } from '../../runtime/control/frames.ts';
import { ClientHandshake } from '../../runtime/control/handshake/client-handshake.ts';
import { discardSession, prepareSession } from '../../runtime/control/handshake/session-setup.ts';
import { encodeFrame, Link } from '../../runtime/control/link.ts';
import { handshakeStallMs } from '../../runtime/limits.ts';
import { RpcServer } from '../../runtime/server/server.ts';
import { turn, until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { hello, limits, linkTo, side } from './by-hand.ts';

let server: RpcServer | undefined;
let channel: Channel | undefined;
afterEach(async () => {
  vi.useRealTimers();
  await channel?.close();
  await server?.shutdown({ graceMs: 0 });
  server = undefined;
  channel = undefined;
});

/** Starts a server on the simulated fabric, and returns a function that connects a client by hand. */
function open(options: ServerOptions = {}): () => Link {
  server = new RpcServer(options, ['sim']);
  server.add(EchoDefinition, { echo: (r) => r });
  const of = server;
  return () => linkTo(of);
}

describe('a client that', () => {
  test.each<[string, Frame[], RegExp]>([
    ['begins with another frame', [{ type: 'ready' }], /began with ready instead of hello/],
    ['speaks another version', [hello({ version: 2 })], /hello of wire version 2, but the server speaks/],
    ['speaks another protocol', [hello({ magic: 'amqp' })], /magic: not "rdma-rpc"/],
    ['lies about its limits', [hello({ limits: { ...limits, inflightMax: 1e6 } })], /limits: inflightMax/],
    [
      'has no fabric in common',
      [hello({ fabrics: [{ name: 'carrier pigeon', host: 'h' }] })],
      /no fabric in common/,
    ],
    ['is on another host', [hello({ fabrics: [{ name: 'sim', host: 'elsewhere' }] })], /no fabric in common/],
    [
      'attaches before the welcome is asked for',
      [{ type: 'attach', fabric: 'sim', address: Uint8Array.of(1) }],
      /began with attach/,
    ],
    [
      'chooses a fabric that was not offered',
      [hello(), { type: 'attach', fabric: 'shm', address: Uint8Array.of(1) }],
      /not offered/,
    ],
    ['sends ready instead of attach', [hello(), { type: 'ready' }], /sent ready instead of attach/],
    [
      'gives a bad queue pair address',
      [hello(), { type: 'attach', fabric: 'sim', address: new Uint8Array(40) }],
      /.+/,
    ],
    ['sends `bye`', [hello(), { type: 'bye', reason: 'changed my mind' }], /changed my mind/],
  ])('%s is refused with a reason and leaves nothing', async (_, frames, reason) => {
    const dial = open();
    const before = stats();
    const link = dial();
    const got: Frame[] = [];
    for (const frame of frames) link.send(frame);
    link.deliver((frame) => got.push(frame));
    await until(() => link.ended !== undefined);
    const reasons = got.map((frame) =>
      'reason' in frame ? frame.reason : 'message' in frame ? frame.message : '',
    );
    expect(reasons.concat(link.ended ?? '').join(' ')).toMatch(reason);
    expect(server!.sessionCount).toBe(0);
    await until(() => stats().queuePairs === before.queuePairs);
  });

  test('is silent is refused when its time is over', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const dial = open({ handshakeTimeoutMs: 5000 });
    const link = dial();
    const refusal = link.receive();
    vi.advanceTimersByTime(4999);
    await turn();
    expect(link.ended).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(await refusal).toMatchObject({
      type: 'refusal',
      code: Status.RESOURCE_EXHAUSTED,
      message: /no handshake within 5000 ms/,
    });
  });

  // Without this rule, unauthenticated peers could keep the server busy with pings.
  test('pings before its session is up is refused, at any step', async () => {
    const dial = open({ log: () => undefined });
    const links = [dial(), dial()];
    links[1]!.send(hello());
    expect(await links[1]!.receive()).toMatchObject({ type: 'welcome' });
    for (const [link, instead] of [
      [links[0]!, 'hello'],
      [links[1]!, 'attach'],
    ] as const) {
      for (let i = 0; i < 3; ++i) link.send({ type: 'ping' });
      expect(await link.receive()).toMatchObject({
        type: 'refusal',
        message: expect.stringMatching(`ping instead of ${instead}`),
      });
    }
  });

  test('falls silent in the middle is refused, too, and its session is freed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const dial = open();
    const before = stats();
    const link = dial();
    link.send(hello());
    expect(await link.receive()).toMatchObject({
      type: 'welcome',
      limits: { inflightMax: 4 },
      fabrics: ['sim'],
    });
    const own = prepareSession(side, 'sim', limits, limits, ownFeatures, { protection: 'none' });
    const address = own.context.native.sessionAddress(own.target.session);
    link.send({ type: 'attach', fabric: 'sim', address });
    expect(await link.receive()).toMatchObject({ type: 'attached' });
    expect(server!.sessionCount).toBe(1);
    vi.advanceTimersByTime(5000);
    // The server's half of the queue pair may have connected last, which counts as a step of the client.
    await turn();
    await turn();
    vi.advanceTimersByTime(handshakeStallMs);
    expect(await link.receive()).toMatchObject({ type: 'refusal' });
    discardSession(own, 'done');
    await until(() => server!.sessionCount === 0 && stats().queuePairs === before.queuePairs);
  });

  test('cannot reach the queue pair of the server gives the session up, and the server does the same', async () => {
    const dial = open({ log: () => undefined });
    const link = dial();
    link.send(hello());
    await link.receive();
    const own = prepareSession(side, 'sim', limits, limits, ownFeatures, { protection: 'none' });
    const address = own.context.native.sessionAddress(own.target.session);
    link.send({ type: 'attach', fabric: 'sim', address });
    await link.receive();
    link.send({ type: 'unreachable', reason: 'no way back' });
    expect(await link.receive()).toMatchObject({ type: 'refusal', message: /no fabric in common connects/ });
    discardSession(own, 'done');
    await until(() => server!.sessionCount === 0);
  });

  test('comes after 1,000 silent clients is still accepted, because the oldest are evicted', async () => {
    const dial = open({ handshakesMax: 16 });
    const silent = Array.from({ length: 1000 }, dial);
    const polite = dial();
    polite.send(hello());
    expect(await polite.receive()).toMatchObject({ type: 'welcome' });
    await until(() => silent.filter((link) => link.ended !== undefined).length >= 984);
    expect(silent.filter((link) => link.ended === undefined).length).toBe(16);
    expect(await silent[0]!.receive()).toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      message: /handshakesMax/,
    });
  });

  test.each<[string, Frame, RegExp]>([
    ['says hello again', hello(), /unexpected hello/],
    ['sends a frame of the server', { type: 'goaway', reason: '' }, /unexpected goaway/],
  ])('%s once its session is up loses it', async (_, frame, reason) => {
    const dial = open();
    const link = dial();
    const connection = await new ClientHandshake(link, side, 'a server').run();
    await until(() => server!.sessionCount === 1);
    link.send(frame);
    const got = await link.receive();
    expect(got).toMatchObject({ type: 'bye', reason });
    discardSession(connection, 'done');
    await until(() => server!.sessionCount === 0);
  });

  test('sends `bye` when its session is connected loses it, and receives nothing more', async () => {
    const dial = open();
    const link = dial();
    const connection = await new ClientHandshake(link, side, 'a server').run();
    await until(() => server!.sessionCount === 1);
    link.send({ type: 'bye', reason: 'enough' });
    await expect(link.receive()).rejects.toThrow('the peer closed the connection');
    discardSession(connection, 'done');
    await until(() => server!.sessionCount === 0);
  });
});

describe('a scripted server that', () => {
  test('refuses while the queue pairs are being connected gives the session up once', async () => {
    const [near, far] = duplexPair();
    const script = new Link(far);
    const client = new ClientHandshake(new Link(near), side, 'a server').run();
    const failed = expect(client).rejects.toThrow(/the server refused the connection: full/);
    await script.receive();
    // Another user holds the context to which the session belongs.
    const held = acquireContext({ fabric: 'sim' });
    const welcome = { type: 'welcome', version, features: ownFeatures, limits, fabrics: ['sim'] } as const;
    script.send({ ...welcome, identity: 'script' });
    await script.receive();
    script.send({ type: 'attached', address: new Uint8Array(40) });
    script.send({ type: 'refusal', code: Status.RESOURCE_EXHAUSTED, message: 'full' });
    await failed;
    expect(() => setContextOptions({})).toThrow(/the context for sim is open/);
    releaseContext(held);
    setContextOptions({});
  });
});

describe('raw sockets', () => {
  test.each([
    ['garbage', Buffer.from('\xff\xfe\xfd\xfc garbage')],
    ['a frame that never ends', Buffer.from([0, 0, 1, 0, 1, 2, 3])],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['nothing, and goes', Buffer.alloc(0)],
  ])('that send %s cost only themselves', async (_, bytes) => {
    server = createServer().add(EchoDefinition, { echo: (r) => r }) as RpcServer;
    const address = await server.listen('127.0.0.1:0');
    const port = Number(address.split(':')[1]);
    const sockets: Socket[] = [];
    for (let i = 0; i < 20; ++i) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.resume();
      if (bytes.length > 0) socket.write(bytes);
      else socket.end();
      sockets.push(socket);
    }
    channel = createChannel(address);
    expect((await createClient(EchoDefinition, channel).echo({ number: 1 })).number).toBe(1);
    for (const socket of sockets) socket.destroy();
  });
});

describe('a server that', () => {
  let fake: NetServer | undefined;
  afterEach(() => void fake?.close());

  /** Listens, and runs the script on each connection. */
  async function impostor(script: (socket: Socket) => void): Promise<string> {
    fake = listen((socket) => {
      socket.on('error', () => undefined);
      script(socket);
    });
    await new Promise<void>((resolve) => fake!.listen(0, '127.0.0.1', resolve));
    return `127.0.0.1:${(fake!.address() as { port: number }).port}`;
  }
  const welcome = (changes: object = {}): Buffer =>
    encodeFrame({
      type: 'welcome',
      version,
      features: 0,
      limits,
      fabrics: ['shm'],
      identity: 's',
      ...changes,
    } as Frame);

  test.each<[string, (socket: Socket) => void, RegExp]>([
    ['hangs up', (socket) => socket.destroy(), /connection (was )?(closed|failed)|closed the connection/],
    ['sends garbage', (socket) => socket.write('SSH-2.0-OpenSSH'), /not an rdma-rpc peer\?/],
    [
      'speaks another version',
      (socket) => socket.write(welcome({ version: 9 })),
      /welcome of wire version 9, but the client speaks wire version 1/,
    ],
    [
      'agrees to more than was asked',
      (socket) => socket.write(welcome({ limits: { ...limits, inflightMax: 4096 } })),
      /agreed to 4096 calls in flight/,
    ],
    [
      'agrees to more streams than were asked for',
      (socket) => socket.write(welcome({ limits: { ...limits, streamsMax: 512 } })),
      /agreed to 512 open streams/,
    ],
    ['has no fabric for us', (socket) => socket.write(welcome({ fabrics: [] })), /no fabric in common/],
    [
      'skips a step',
      (socket) => socket.write(Buffer.concat([welcome(), encodeFrame({ type: 'ready' })])),
      /sent ready instead of attached/,
    ],
    [
      'gives a bad queue pair address',
      (socket) =>
        socket.write(
          Buffer.concat([welcome(), encodeFrame({ type: 'attached', address: new Uint8Array(64) })]),
        ),
      /no fabric connects \(shm: the peer's address is not an shm address/,
    ],
    [
      'refuses',
      (socket) => socket.write(encodeFrame({ type: 'refusal', code: 16, message: 'who are you?' })),
      /refused the connection: who are you\?/,
    ],
    ['sends `bye`', (socket) => socket.write(encodeFrame({ type: 'bye', reason: 'not today' })), /not today/],
  ])(
    "%s: calls fail with UNAVAILABLE or the code of the refusal, processed 'no' and the reason",
    async (_, script, reason) => {
      const address = await impostor(script);
      channel = createChannel(address, { log: () => undefined });
      const error = await createClient(EchoDefinition, channel)
        .echo({})
        .then(
          () => undefined,
          (e: RpcError) => e,
        );
      expect(error).toBeInstanceOf(RpcError);
      expect([Status.UNAVAILABLE, Status.UNAUTHENTICATED]).toContain(error!.code);
      expect(error!.processed).toBe('no');
      expect(error!.message).toMatch(reason);
      expect(error!.message).toContain(address);
      expect(channel.state).toBe('failing');
    },
  );

  test('is silent ends the attempt after connectTimeoutMs, with the name of the option', async () => {
    const address = await impostor(() => undefined);
    channel = createChannel(address, { connectTimeoutMs: 30 });
    await expect(channel.ready()).rejects.toMatchObject({
      code: Status.UNAVAILABLE,
      message: /option connectTimeoutMs of the channel/,
    });
  });

  test('does not exist causes UNAVAILABLE at once', async () => {
    channel = createChannel('unix:/tmp/rdma-rpc-nobody-here.sock');
    await expect(createClient(EchoDefinition, channel).echo({})).rejects.toMatchObject({
      code: Status.UNAVAILABLE,
      processed: 'no',
      message: /cannot connect to unix:\/tmp\/rdma-rpc-nobody-here.sock/,
    });
  });
});
