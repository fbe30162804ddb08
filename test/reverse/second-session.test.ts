/**
 * Tests the session for calls from server to client. The tests check which peers may have it and how it ends.
 * A peer that breaks the rules, or the end of one session, must not affect another session.
 */
import {
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  createServer,
  type Server,
  type ServerOptions,
  Status,
  stats,
} from 'rdma-rpc';
import { type Peers, peersOf, type ReverseServer, serveReverse } from 'rdma-rpc/reverse';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Sessions } from '../../runtime/boundary/sessions.ts';
import { type Frame, feature, ownFeatures } from '../../runtime/control/frames.ts';
import { Link } from '../../runtime/control/link.ts';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { socketPath } from '../runtime/world.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { caught, collect } from '../stream/stream-world.ts';

let closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closing.reverse()) await close();
  closing = [];
});

interface World {
  readonly server: Server;
  readonly peers: Peers;
  readonly channel: Channel;
  readonly reverse: ReverseServer;
  readonly log: EchoLog;
  readonly address: string;
}

function listening(options: ServerOptions = {}): { server: Server; peers: Peers } {
  const server = createServer(options);
  const peers = peersOf(server);
  server.add(EchoDefinition, echoHandlers({ started: 0, aborted: [] }));
  closing.push(() => server.shutdown({ graceMs: 0 }));
  return { server, peers };
}

async function open(server: ServerOptions = {}, options: ChannelOptions = {}): Promise<World> {
  const made = listening(server);
  const address = await made.server.listen(`unix:${socketPath()}`);
  const channel = createChannel(address, options);
  closing.push(() => channel.close());
  const log: EchoLog = { started: 0, aborted: [] };
  const reverse = serveReverse(channel).add(EchoDefinition, echoHandlers(log));
  closing.push(() => reverse.close());
  return { ...made, channel, reverse, log, address };
}

async function clientOf({ peers }: Pick<World, 'peers'>) {
  await vi.waitFor(() => expect(peers.all).toHaveLength(1), { timeout: 10_000 });
  return peers.client(EchoDefinition, peers.all[0]!);
}

/** Returns the frames of all sideband connections as they are sent; `change` may replace a frame. */
function overhear(change: (frame: Frame) => Frame = (frame) => frame): Frame[] {
  const frames: Frame[] = [];
  const { send } = Link.prototype;
  vi.spyOn(Link.prototype, 'send').mockImplementation(function (this: Link, frame: Frame) {
    const sent = change(frame);
    frames.push(sent);
    send.call(this, sent);
  });
  return frames;
}

const without = (type: Frame['type']) => (frame: Frame) =>
  frame.type === type && 'features' in frame
    ? { ...frame, features: frame.features & ~feature.reverse }
    : frame;

/** Changes one byte of the proof. */
function tampered(frame: Frame): Frame {
  const { proof } = frame as { proof: Uint8Array };
  return { ...frame, proof: proof.map((byte, at) => (at === 0 ? byte ^ 1 : byte)) } as Frame;
}

test('this side can have a second session', () => {
  expect(ownFeatures & feature.reverse).toBe(feature.reverse);
});

test('a channel that serves nothing has one session, and sends no frame for a second one', async () => {
  const frames = overhear();
  const { server } = listening();
  const channel = createChannel(await server.listen(`unix:${socketPath()}`));
  closing.push(() => channel.close());
  await createClient(EchoDefinition, channel).echo({ number: 1 });
  expect(stats('shm').sessions).toBe(2);
  expect(frames.map(({ type }) => type)).toEqual(['hello', 'welcome', 'attach', 'attached', 'ready']);
});

test('a client that serves has two sessions, with separate keys', async () => {
  const frames = overhear();
  const world = await open({ security: { require: 'sealed' } });
  await world.reverse.ready;
  await (await clientOf(world)).echo({ number: 1 });
  expect(stats('shm').sessions).toBe(4);
  const [attach, serve] = ['attach', 'serve'].map((type) => frames.find((frame) => frame.type === type));
  expect(serve).toMatchObject({ number: 0, proof: expect.any(Uint8Array) });
  expect(attach).toMatchObject({ proof: expect.any(Uint8Array) });
});

describe('a peer of a release without the second session', () => {
  test('when it is a server, the client gets an error', async () => {
    overhear(without('welcome'));
    const world = await open();
    const error = await caught(() => world.reverse.ready);
    expect(error).toMatchObject({ code: Status.UNIMPLEMENTED, processed: 'no' });
    expect(error.message).toContain('is of a release that makes no calls to clients in this way');
    // Other calls continue.
    expect(await createClient(EchoDefinition, world.channel).echo({ number: 2 })).toMatchObject({
      number: 2,
    });
  });

  test('when it is a client that opens a stream in order to serve, the error says what to do', async () => {
    const { server } = listening();
    const channel = createChannel(await server.listen(`unix:${socketPath()}`));
    closing.push(() => channel.close());
    const { ReverseDefinition } = await import('../../runtime/reverse/gen/rdma_rpc/reverse.rdma.ts');
    const error = await caught(() => collect(createClient(ReverseDefinition, channel).serve([])));
    expect(error).toMatchObject({ code: Status.UNIMPLEMENTED });
    expect(error.message).toContain(
      'serves calls in another way; use the same rdma-rpc release on both sides',
    );
  });

  test('a client that did not offer to serve, and serves nevertheless, is refused', async () => {
    overhear(without('hello'));
    const world = await open();
    expect(await caught(() => world.reverse.ready)).toMatchObject({ code: Status.UNIMPLEMENTED });
    expect(world.peers.all).toEqual([]);
  });
});

describe('clients that may serve', () => {
  test.each([
    ['by a table without it', { 'test.echo.Echo/*': '*' }],
    ['by a function', (_: unknown, method: string) => method !== 'rdma_rpc.Reverse/Serve'],
    ['by a function that takes its time', async (_: unknown, method: string) => !method.includes('Reverse')],
  ])('not clients that are denied %s (option authorize)', async (_, authorize) => {
    const onDenied = vi.fn();
    const world = await open({ authorize, onDenied } as ServerOptions);
    const error = await caught(() => world.reverse.ready);
    expect(error).toMatchObject({ code: Status.PERMISSION_DENIED });
    expect(error.message).toContain('rdma_rpc.Reverse/Serve: this client is not allowed to call this method');
    expect(world.peers.all).toEqual([]);
    expect(await createClient(EchoDefinition, world.channel).echo({ number: 2 })).toMatchObject({
      number: 2,
    });
  });

  test.each([
    ['a table', { 'rdma_rpc.Reverse/Serve': '*' }],
    ['a function', async () => true],
  ])('clients that are allowed by %s', async (_, authorize) => {
    const world = await open({ authorize });
    await world.reverse.ready;
    expect(await (await clientOf(world)).echo({ number: 3 })).toMatchObject({ number: 3 });
  });

  test("handlers of the client know the server's identity", async () => {
    const world = await open();
    await world.reverse.ready;
    const answer = await (await clientOf(world)).behave({ text: 'peer' });
    expect(answer.text).toContain(world.address);
    expect(answer.text).toContain(`pid ${process.pid}`);
  });
});

describe('the end of the second session', () => {
  test('leaves the connection, and another second session follows', async () => {
    const world = await open();
    await world.reverse.ready;
    const echo = await clientOf(world);
    const error = caught(() => echo.behave({ text: 'hang' }));
    await vi.waitFor(() => expect(world.log.started).toBe(1));
    const first = createClient(EchoDefinition, world.channel);
    await first.echo({});
    await world.reverse.close();
    expect(await error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    expect(world.log.aborted).toEqual([Status.CANCELLED]);
    expect(await first.echo({ number: 4 })).toMatchObject({ number: 4 });
    expect(world.server.sessionCount).toBe(1);
    for (let round = 0; round < 20; ++round) {
      const again = serveReverse(world.channel).add(EchoDefinition, { echo: () => ({ number: round }) });
      await again.ready;
      expect(await (await clientOf(world)).echo({})).toMatchObject({ number: round });
      await again.close();
    }
    await vi.waitFor(() => expect(stats('shm').sessions).toBe(2));
  });

  test('by shutdown waits for calls in progress of both directions', async () => {
    const world = await open();
    await world.reverse.ready;
    const echo = await clientOf(world);
    const busy = echo.behave({ text: 'check', number: 200, payload: new Uint8Array(100_000) });
    await vi.waitFor(() => expect(world.log.started).toBe(1));
    const down = world.server.shutdown({ graceMs: 60_000 });
    expect((await busy).payload).toHaveLength(100_000);
    expect(await caught(() => echo.echo({}))).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    await down;
    expect(world.peers.all).toEqual([]);
  });

  test('an idle connection stays while its client serves', async () => {
    const world = await open({ connectionIdleMaxMs: 100 });
    await world.reverse.ready;
    const echo = await clientOf(world);
    const gone = vi.fn();
    world.peers.on('gone', gone);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await echo.echo({ number: 1 })).toMatchObject({ number: 1 });
    expect(gone).not.toHaveBeenCalled();
    await world.reverse.close();
    await vi.waitFor(() => expect(world.server.sessionCount).toBe(0));
  });

  test('a connection that has reached its age ends, and the client serves on the next one', async () => {
    const world = await open({ connectionAgeMaxMs: 200 });
    await world.reverse.ready;
    await clientOf(world);
    const first = world.peers.all[0]!;
    const hang = caught(() =>
      world.peers.client(EchoDefinition, first).behave({ text: 'hang' }, { timeoutMs: 600 }),
    );
    await vi.waitFor(() => expect(world.peers.all.some((each) => each !== first)).toBe(true), {
      timeout: 5000,
    });
    const next = world.peers.all.find((each) => each !== first)!;
    expect(await world.peers.client(EchoDefinition, next).echo({ number: 6 })).toMatchObject({ number: 6 });
    // The call in progress ends by itself, and not because its connection ends.
    expect(await hang).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
    await vi.waitFor(() => expect(world.peers.all).not.toContain(first));
  });
});

describe('a peer that breaks the rules loses its connection, and the next one serves', () => {
  test.each<[string, Frame['type'], (frame: Frame) => Frame]>([
    ["a queue pair that is not proved to be the client's", 'serve', tampered],
    ["a queue pair that is not proved to be the server's", 'serving', tampered],
    ['serve out of turn', 'serve', (frame) => ({ ...frame, number: 7 }) as Frame],
    ['an address that is none', 'serve', (frame) => ({ ...frame, address: new Uint8Array(500) }) as Frame],
  ])('%s', async (_, type, change) => {
    let once = true;
    overhear((frame) => {
      if (frame.type !== type || !once) return frame;
      once = false;
      return change(frame);
    });
    const world = await open();
    await world.reverse.ready;
    expect(once).toBe(false);
    expect(await (await clientOf(world)).echo({ number: 5 })).toMatchObject({ number: 5 });
    await vi.waitFor(() => expect(stats('shm').sessions).toBe(4));
  });

  test('when it sends `serve` twice', async () => {
    const sent: Link[] = [];
    const { send } = Link.prototype;
    vi.spyOn(Link.prototype, 'send').mockImplementation(function (this: Link, frame: Frame) {
      send.call(this, frame);
      if (frame.type !== 'serve' || sent.length > 0) return;
      sent.push(this);
      send.call(this, { ...frame, number: 1 });
    });
    const world = await open();
    await world.reverse.ready;
    await vi.waitFor(() => expect(sent[0]!.ended).toContain('the client sent serve out of order'));
    expect(await (await clientOf(world)).echo({ number: 5 })).toMatchObject({ number: 5 });
  });
});

test('when a fabric has no room for another session the client asks again, and other calls continue', async () => {
  let refusals = 2;
  const { create } = Sessions.prototype;
  vi.spyOn(Sessions.prototype, 'create').mockImplementation(function (this: Sessions, options) {
    if (options.active !== undefined && refusals-- > 0) throw new Error('there is no memory for it');
    return create.call(this, options);
  });
  const world = await open();
  expect(await createClient(EchoDefinition, world.channel).echo({ number: 2 })).toMatchObject({ number: 2 });
  await world.reverse.ready;
  expect(refusals).toBeLessThan(1);
  expect(await (await clientOf(world)).echo({ number: 5 })).toMatchObject({ number: 5 });
});

test('a handler that blocks for long, and one that throws, cost no other call', async () => {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const world = await open();
  await world.reverse.ready;
  const echo = await clientOf(world);
  const calls = Array.from({ length: 50 }, (_, i) =>
    i % 10 === 0
      ? caught(() => echo.behave({ text: i % 20 === 0 ? 'throw' : 'reject' }))
      : echo.echo({ number: i }),
  );
  calls.push(echo.behave({ text: 'busy', number: 200 }));
  for (const [i, answer] of (await Promise.all(calls)).entries()) {
    if (i === 50) expect(answer).toMatchObject({ number: 200 });
    else if (i % 10 === 0) expect(answer).toMatchObject({ code: Status.INTERNAL });
    else expect(answer).toMatchObject({ number: i });
  }
});

test('each server of several addresses can call', async () => {
  const worlds = [listening(), listening()];
  const addresses = await Promise.all(worlds.map(({ server }) => server.listen(`unix:${socketPath()}`)));
  const channel = createChannel(addresses);
  closing.push(() => channel.close());
  const reverse = serveReverse(channel).add(EchoDefinition, { echo: ({ number }) => ({ number }) });
  closing.push(() => reverse.close());
  await reverse.ready;
  for (const world of worlds)
    expect(await (await clientOf(world)).echo({ number: 8 })).toMatchObject({ number: 8 });
  expect(worlds.map(({ peers }) => peers.all.length)).toEqual([1, 1]);
});

test('streams of the server count for the connection that carries them, not for the other direction', async () => {
  const world = await open({ streamsMax: 2 }, { streamsMax: 2 });
  await world.reverse.ready;
  await clientOf(world);
  const back = world.peers.client(StreamsDefinition, world.peers.all[0]!);
  expect(await caught(() => collect(back.count({ count: 1 })))).toMatchObject({ code: Status.UNIMPLEMENTED });
});
