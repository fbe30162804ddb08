/**
 * Tests that `shutdown({ graceMs })` ends, independent of handlers and clients, and leaves nothing behind. A
 * connection that ends because of its age also leaves nothing behind. The tests run over the simulated fabric
 * and shared memory.
 */
import { type Duplex, duplexPair } from 'node:stream';
import {
  type Client,
  createChannel,
  createClient,
  createServer,
  type Handlers,
  RpcError,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { ClientChannel } from '../../runtime/client/channel.ts';
import type { Channel } from '../../runtime/client/channel-type.ts';
import { RpcServer } from '../../runtime/server/server.ts';
import type { Server } from '../../runtime/server/server-type.ts';
import { until } from '../outcomes.ts';
import { socketPath } from '../runtime/world.ts';
import type { ItemInit } from '../stream/gen/stream.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';

const never = new Promise<never>(() => undefined);
const megabyte = new Uint8Array(1 << 20);

type TestClient = Client<typeof StreamsDefinition>;
type Fabric = 'sim' | 'shm' | 'tcp';

interface World {
  readonly server: Server;
  readonly channel: Channel;
  readonly client: TestClient;
  /** The client's ends of its connections, in tests where these have no socket. */
  readonly ends: Duplex[];
  /** Number of handlers that have begun, and number of handlers that their signal has notified. */
  readonly seen: { begun: number; told: number };
}

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of open.splice(0).reverse()) await close();
});

async function openWorld(fabric: Fabric, options: object = {}): Promise<World> {
  const seen = { begun: 0, told: 0 };
  const begin = (signal: AbortSignal): void => {
    ++seen.begun;
    signal.addEventListener('abort', () => ++seen.told);
  };
  const handlers: Partial<Handlers<typeof StreamsDefinition>> = {
    // The handler ignores the end of its call and the end of the server.
    unary: (_, { signal }) => {
      begin(signal);
      return never;
    },
    note: async (_, { signal }) => {
      begin(signal);
      await never;
    },
    sum: (_, { signal }) => {
      begin(signal);
      return never;
    },
    async *count(_, { signal }) {
      begin(signal);
      for (;;) yield { payload: megabyte };
    },
    async *echo(items, { signal }) {
      begin(signal);
      for await (const item of items) yield item;
      await never;
    },
    async *talk(_, { signal }) {
      begin(signal);
      yield {};
      await never;
    },
  };
  const ends: Duplex[] = [];
  let server: Server;
  let channel: Channel;
  if (fabric === 'sim') {
    const simulated = new RpcServer(options, ['sim']).add(StreamsDefinition, handlers);
    server = simulated;
    const dial = (): Promise<Duplex> => {
      const [near, far] = duplexPair();
      ends.push(near);
      simulated.accept(far, 'test');
      return Promise.resolve(near);
    };
    channel = new ClientChannel({ address: 'test', dial, fabrics: ['sim'] }, {});
  } else {
    server = createServer({ fabric, ...options }).add(StreamsDefinition, handlers);
    const place = fabric === 'shm' ? `unix:${socketPath()}` : '127.0.0.1:0';
    channel = createChannel(await server.listen(place), { fabric });
  }
  open.push(
    () => server.shutdown({ graceMs: 0 }),
    () => channel.close(),
  );
  await channel.ready();
  return { server, channel, client: createClient(StreamsDefinition, channel), ends, seen };
}

async function* endless(item: ItemInit): AsyncGenerator<ItemInit> {
  for (;;) yield item;
}
async function* silent(): AsyncGenerator<ItemInit> {
  yield await never;
}
/**
 * Reads one message, and waits for the end of the stream without reading another message until `more`
 * resolves.
 */
async function readSlowly(stream: AsyncIterable<unknown>, more: Promise<void>): Promise<void> {
  for await (const _ of stream) await more;
}

/**
 * The calls in progress when the shutdown of the server begins. Each entry returns promises of calls that can
 * end only with an error.
 */
const troubles: readonly [string, (client: TestClient, over: Promise<void>) => Promise<unknown>[]][] = [
  ['nothing', () => []],
  ['handlers that never end', (client) => Array.from({ length: 300 }, () => client.unary({}))],
  [
    'large requests whose handlers never end',
    (client) => Array.from({ length: 20 }, () => client.unary({ bytes: 1, text: 'x'.repeat(200_000) })),
  ],
  ['a stream whose client sends nothing', (client) => [client.sum(silent())]],
  ['a stream whose client sends for ever', (client) => [client.sum(endless({ payload: megabyte }))]],
  ['small messages for ever, to a handler that reads none', (client) => [client.sum(endless({ number: 1 }))]],
  ['a stream without a reader', (client, over) => [readSlowly(client.count({}), over)]],
  ['streams without readers', (client, over) => [1, 2, 3, 4].map(() => readSlowly(client.count({}), over))],
  [
    'both ways, as fast as it goes',
    (client) => [readSlowly(client.echo(endless({ payload: megabyte })), Promise.resolve())],
  ],
  ['a generator that never ends', (client, over) => [readSlowly(client.talk(silent()), over)]],
];

describe.each<Fabric>(['sim', 'shm', 'tcp'])('shutdown ends, over %s', (fabric) => {
  test.each(troubles)('with %s', async (_, begin) => {
    const { server, channel, client, seen } = await openWorld(fabric);
    let go = (): void => undefined;
    const over = new Promise<void>((resolve) => (go = resolve));
    const calls = begin(client, over).map((call) => call.then(() => undefined, RpcError.from));
    await until(() => seen.begun >= Math.min(calls.length, 256));
    await server.shutdown({ graceMs: 20 });
    go();
    for (const error of await Promise.all(calls)) expect(error?.code).toBe(Status.UNAVAILABLE);
    expect(server.sessionCount).toBe(0);
    await until(() => seen.told === seen.begun);
    await channel.close();
    await until(() => stats(fabric).queuePairs === 0);
    // The server's own work has also ended, and it accepts no further call.
    expect((await RpcError.from(await client.unary({}).catch((error: unknown) => error))).processed).toBe(
      'no',
    );
  });

  test('ends one-way calls whose handlers never end', async () => {
    const { server, client, seen } = await openWorld(fabric);
    for (let i = 0; i < 10; ++i) await client.note({});
    await server.shutdown({ graceMs: 20 });
    expect(seen.begun).toBe(10);
    await until(() => seen.told === 10);
  });

  test('ends without a grace period, also when it is called twice', async () => {
    const { server, client } = await openWorld(fabric);
    const call = client.unary({}).catch(RpcError.from);
    const first = server.shutdown({ graceMs: 0 });
    expect(server.shutdown({ graceMs: 86_400_000 })).toBe(first);
    await first;
    expect(await call).toMatchObject({ code: Status.UNAVAILABLE });
  });
});

test('ends with a client that is not notified, and continues', async () => {
  const { server, client, ends, seen } = await openWorld('sim');
  const call = client.unary({}).catch(RpcError.from);
  await until(() => seen.begun === 1);
  for (const end of ends) end.pause();
  await server.shutdown({ graceMs: 20 });
  expect(server.sessionCount).toBe(0);
  for (const end of ends) end.resume();
  expect(await call).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
});

describe("a connection's age", () => {
  const ages = { connectionAgeMaxMs: 1000, connectionAgeGraceMs: 5000 };
  async function aged(): Promise<
    World & { stream: AsyncIterator<{ number: number }>; say(n: number): void }
  > {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const world = await openWorld('sim', ages);
    const words: number[] = [];
    let wake = (): void => undefined;
    async function* spoken(): AsyncGenerator<ItemInit> {
      for (;;) {
        while (words.length > 0) yield { number: words.shift()! };
        await new Promise<void>((resolve) => (wake = resolve));
      }
    }
    const stream = world.client.echo(spoken())[Symbol.asyncIterator]();
    const say = (n: number): void => {
      words.push(n);
      wake();
    };
    say(1);
    expect((await stream.next()).value).toMatchObject({ number: 1 });
    vi.advanceTimersByTime(1100);
    await until(() => world.channel.state === 'idle');
    return { ...world, stream, say };
  }

  test('leaves an open stream its grace period, in which it continues; others use a new connection', async () => {
    const { stream, say, client, server } = await aged();
    say(2);
    expect((await stream.next()).value).toMatchObject({ number: 2 });
    await client.note({});
    expect(server.sessionCount).toBe(2);
    await stream.return?.();
    await until(() => server.sessionCount === 1);
  });

  test('ends an open stream at the end of the grace period', async () => {
    const { stream, seen } = await aged();
    const next = stream.next().catch(RpcError.from);
    vi.advanceTimersByTime(5000);
    expect(await next).toMatchObject({
      code: Status.UNAVAILABLE,
      message: expect.stringContaining('the connection has reached its age'),
    });
    await until(() => seen.told === 1);
  });
});
