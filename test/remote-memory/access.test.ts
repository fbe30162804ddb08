/**
 * Tests the clients that may have remote memory, and the errors for other clients: servers without remote
 * memory, older peers, and quotas.
 */
import { createChannel, createClient, createServer, type ServerOptions, Status } from 'rdma-rpc';
import { connectMemory, type ExposeOptions, memoryOf } from 'rdma-rpc/memory';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { clientChannel } from '../../runtime/client/channel.ts';
import { type Frame, feature, ownFeatures } from '../../runtime/control/frames.ts';
import { Link } from '../../runtime/control/link.ts';
import { MemoryDefinition } from '../../runtime/memory/gen/rdma_rpc/memory.rdma.ts';
import { openPair } from '../runtime/pair.ts';
import { socketPath } from '../runtime/world.ts';
import { Hostile } from './hostile.ts';
import { caught, lend, memoryWays, openMarket, openMemory } from './memory-bed.ts';

let closing: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closing.reverse()) await close();
  closing = [];
});
function later<T extends { close(): unknown }>(made: T): T {
  closing.push(() => made.close());
  return made;
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
  frame.type === type && 'features' in frame ? { ...frame, features: ownFeatures & ~feature.memory } : frame;
const isMemory = ({ type }: Frame): boolean => type.startsWith('memory');

test('a server that was not asked to refuses, and gives out no queue pair', async () => {
  const frames = overhear();
  const { channel } = later(await openPair('shm', () => undefined));
  const error = await caught(connectMemory(channel));
  expect(error).toMatchObject({ code: Status.UNIMPLEMENTED });
  expect(error.message).toMatch(/must call memoryOf\(server\) first/);
  expect(frames.filter(isMemory).map(({ type }) => type)).toEqual(['memory', 'memoryEnd']);
});

test.each(['welcome', 'hello'] as const)(
  'without the bit in the %s of an older peer, no frame asks for it',
  async (type) => {
    const frames = overhear(without(type));
    const market = later(await openMarket('shm'));
    await market.channel.ready();
    // An older client has no code that requests remote memory.
    const error = type === 'welcome' ? await caught(connectMemory(market.channel)) : undefined;
    if (type === 'welcome') {
      expect(error).toMatchObject({ code: Status.UNIMPLEMENTED });
      expect(error!.message).toMatch(/a release without remote memory/);
    }
    await market.trade({}, (_, memory) => {
      expect(memory).toBeUndefined();
      return {};
    });
    expect(frames.filter(isMemory)).toEqual([]);
  },
);

test('a client that did not offer it and asks all the same is refused', async () => {
  overhear(without('hello'));
  const market = later(await openMarket('shm'));
  await market.channel.ready();
  expect(String(await caught(Hostile.connect(market.channel)))).toMatch(/memoryEnd/);
  await market.trade({}, () => ({}));
});

test.each(memoryWays)('%s: authorize may forbid it', async (way) => {
  const asked: string[] = [];
  const authorize: ServerOptions['authorize'] = async (_, method) => {
    asked.push(method);
    return method !== 'rdma_rpc.Memory/Connect';
  };
  const market = later(await openMarket(way, { server: { authorize } }));
  const error = await caught(connectMemory(market.channel));
  expect(error).toMatchObject({ code: Status.PERMISSION_DENIED });
  expect(asked).toEqual(['rdma_rpc.Memory/Connect']);
  await market.trade({}, (_, memory) => {
    expect(memory).toBeUndefined();
    return {};
  });
});

test('a table of authorize may name it', async () => {
  const authorize = { '*': '*', 'rdma_rpc.Memory/Connect': 'somebody' };
  const market = later(await openMarket('shm', { server: { authorize } }));
  expect(await caught(connectMemory(market.channel))).toMatchObject({ code: Status.PERMISSION_DENIED });
});

test('a sealed session refuses it by name', async () => {
  const server = createServer({ security: { require: 'sealed' } });
  memoryOf(server);
  const address = await server.listen(`unix:${socketPath()}`);
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const frames = overhear();
  const error = await caught(connectMemory(later(createChannel(address))));
  expect(error).toMatchObject({ code: Status.FAILED_PRECONDITION });
  expect(error.message).toMatch(/this session is sealed/);
  expect(frames.filter(isMemory)).toEqual([]);
});

test.each(['loopback', 'shm-fd'] as const)('%s has none, and says which fabrics have it', async (way) => {
  const market = later(await openMarket(way));
  const error = await caught(connectMemory(market.channel));
  expect(error).toMatchObject({ code: Status.FAILED_PRECONDITION });
  expect(error.message).toContain(`the fabric ${way} has no remote memory; shm, tcp and verbs have it`);
});

test('a channel with several servers has none', async () => {
  const addresses = await Promise.all(
    [1, 2].map(async () => {
      const server = createServer();
      memoryOf(server);
      closing.push(() => server.shutdown({ graceMs: 0 }));
      return server.listen(`unix:${socketPath()}`);
    }),
  );
  const error = await caught(connectMemory(later(createChannel(addresses))));
  expect(error.message).toMatch(/several servers/);
});

describe('limits', () => {
  test('quotas count what a server exposes to an identity, and what it takes back', async () => {
    const bed = later(await openMemory('shm', { server: { quotas: { exposedBytesMax: 100 } } }));
    const first = bed.server.expose(new ArrayBuffer(60), { read: true });
    const second = (): unknown => bed.server.expose(new ArrayBuffer(41), { read: true });
    expect(second).toThrow(/41 more bytes .* 60 of 100 .*exposedBytesMax/);
    // Memory that the client exposes does not count towards the server's quota.
    bed.client.expose(new ArrayBuffer(4096), { read: true });
    // Memory that is refused is not counted.
    expect(() => bed.server.expose(new ArrayBuffer(0), { read: true })).toThrow(RangeError);
    await first.close();
    second();
    bed.server.close();
    await bed.client.ended;
    const client = await connectMemory(bed.channel);
    const { exposure } = await lend({ ...bed, client }, 'from server', new ArrayBuffer(100), { read: true });
    expect(exposure.bytes.byteLength).toBe(100);
  });

  test('exposuresMax is for each peer', async () => {
    const bed = later(await openMemory('shm', { memory: { exposuresMax: 2 } }));
    const [first] = [1, 2].map(() => bed.server.expose(new ArrayBuffer(8), { read: true }));
    expect(() => bed.server.expose(new ArrayBuffer(8), { read: true })).toThrow(/option exposuresMax/);
    await first!.close();
    bed.server.expose(new ArrayBuffer(8), { read: true });
  });
});

describe('what an application gives', () => {
  test.each<[string, ExposeOptions, RegExp]>([
    ['no right', {}, /at least one right/],
    ['an unknown option', { reads: true } as unknown as ExposeOptions, /reads/],
    ['onWritten without write', { read: true, onWritten: () => undefined }, /needs the right to write/],
    ['a time of 0', { read: true, expiresMs: 0 }, /expiresMs/],
    ['a right that is no boolean', { read: 1 } as unknown as ExposeOptions, /read/],
  ])('%s', async (_, options, text) => {
    const bed = later(await openMemory('sim'));
    expect(() => bed.client.expose(new ArrayBuffer(8), options)).toThrow(text);
  });

  test.each([[undefined], [8], ['text'], [{ byteLength: 8 }], [new Uint8Array(0)]])(
    '%s as a buffer',
    async (given) => {
      const bed = later(await openMemory('sim'));
      expect(() => bed.client.expose(given as ArrayBuffer, { read: true })).toThrow(/expose|regMr/);
    },
  );

  test('memory for atomics must be aligned', async () => {
    const bed = later(await openMemory('sim'));
    const { bytes } = bed.client.alloc(64);
    expect(() => bed.client.expose(bytes.subarray(4), { atomic: true })).toThrow(/multiple of 8/);
  });

  test('two calls of memoryOf, and what is neither channel nor server', async () => {
    const server = createServer();
    memoryOf(server);
    expect(() => memoryOf(server)).toThrow(/before/);
    expect(() => memoryOf({} as typeof server)).toThrow(TypeError);
    expect(() => memoryOf(createServer(), { revokeMs: 0 })).toThrow(RangeError);
    expect(await caught(connectMemory({} as ReturnType<typeof createChannel>))).toBeInstanceOf(TypeError);
  });
});

describe('the sideband', () => {
  const ask = (number: number): Frame => ({
    type: 'memory',
    number,
    address: new Uint8Array(40),
    exposer: new Uint8Array(8),
  });
  async function tcp() {
    const market = later(await openMarket('tcp'));
    await market.channel.ready();
    return { ...market, link: clientChannel('test', market.channel).link! };
  }

  test('an address that is none is answered, and the session goes on', async () => {
    const { link, trade } = await tcp();
    const answer = await new Promise<Frame>((resolve) => {
      link.memory = { onFrame: resolve, end: () => undefined };
      link.send(ask(0));
    });
    expect(answer).toMatchObject({ type: 'memoryEnd', number: 0 });
    await trade({}, () => ({}));
  });

  test.each([
    ['a number that is not the next one', [ask(1)]],
    ['the same number again', [ask(0), ask(0)]],
  ])('%s ends the connection', async (_, frames) => {
    const { link } = await tcp();
    for (const frame of frames) link.send(frame);
    await expect.poll(() => link.ended).toMatch(/the client sent memory out of order/);
  });

  test('where queue pairs are bound, a wrong proof ends the connection', async () => {
    for (const type of ['memory', 'memoryAccepted'] as const) {
      overhear((frame) => (frame.type === type ? { ...frame, proof: new Uint8Array(32) } : frame));
      const server = createServer();
      memoryOf(server);
      const address = await server.listen(`unix:${socketPath()}`);
      closing.push(() => server.shutdown({ graceMs: 0 }));
      const channel = later(createChannel(address));
      await channel.ready();
      const link = clientChannel('test', channel).link!;
      expect(await caught(connectMemory(channel))).toMatchObject({ code: Status.UNAVAILABLE });
      expect(link.ended).toMatch(/not proved to come from the peer/);
      vi.restoreAllMocks();
    }
  });
});

test('the method that authorize is asked for is no way to connect', async () => {
  const market = later(await openMarket('shm'));
  const error = await caught(createClient(MemoryDefinition, market.channel).connect({}));
  expect(error).toMatchObject({ code: Status.UNIMPLEMENTED });
  expect(error.message).toMatch(/use connectMemory\(channel\)/);
});
