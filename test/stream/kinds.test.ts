/**
 * Tests the four kinds of calls as users make them, over the addon, by every way that works within one
 * process.
 */
import { type Client, createChannel, createClient, leaseOf, type Metadata, Status, stats } from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { ways } from '../runtime/world.ts';
import { type Item, type ItemInit, StreamsDefinition } from './gen/stream.rdma.ts';
import { caught, collect, openStreams, type StreamWorld } from './stream-world.ts';

describe.each(ways)('%s', (way) => {
  let world: StreamWorld;
  afterEach(async () => {
    await world.close();
  });
  async function open(...options: [object?, object?]): Promise<Client<typeof StreamsDefinition>> {
    world = await openStreams(way, ...options);
    return createClient(StreamsDefinition, world.channel);
  }

  test.each([
    [0, 0],
    [1, 0],
    [1, 8],
    [3000, 0],
    [1000, 64],
    [200, 8140],
    [100, 8180],
    [100, 8192],
    [40, 100_000],
    [5, 3_000_000],
  ])('a server stream of %d messages with %d bytes each arrives in order', async (count, bytes) => {
    const client = await open();
    let next = 0;
    for await (const item of client.count({ count, bytes })) {
      expect(item.number).toBe(next++);
      if (item.payload.length !== bytes || item.payload.some((byte) => byte !== 7))
        expect.fail('wrong bytes');
      leaseOf(item)?.release();
    }
    expect(next).toBe(count);
  });

  test('small messages may travel together, even when their sum exceeds the limit of one message', async () => {
    const client = await open({ messageMaxBytes: 1024 }, { messageMaxBytes: 1024 });
    const items = Array.from({ length: 100 }, (_, number) => ({ number, payload: new Uint8Array(500) }));
    expect((await collect(client.echo(items))).map(({ number }) => number)).toEqual(items.map((_, i) => i));
  });

  test('large and small messages mixed stay in order', async () => {
    const client = await open();
    const sizes = [0, 20_000, 10, 400_000, 8190, 1, 70_000];
    const items = Array.from({ length: 150 }, (_, i) => ({
      number: i,
      payload: new Uint8Array(sizes[i % sizes.length]!).fill(i),
    }));
    let next = 0;
    for await (const item of client.echo(items)) {
      const payload = items[next]!.payload;
      expect(item.number).toBe(next++);
      if (Buffer.compare(item.payload, payload) !== 0) expect.fail(`wrong bytes in message ${item.number}`);
      leaseOf(item)?.release();
    }
    expect(next).toBe(items.length);
  });

  test.each([
    ['an array', (items: ItemInit[]) => items],
    ['a generator', (items: ItemInit[]) => items.values()],
    [
      'an async generator',
      async function* (items: ItemInit[]) {
        yield* items;
      },
    ],
  ])('a client stream takes %s', async (_, of) => {
    const client = await open();
    const items = Array.from({ length: 2000 }, (_, number) => ({ number }));
    expect(await client.sum(of(items))).toMatchObject({ number: 1_999_000, text: '2000' });
    expect(await client.sum(of([]))).toMatchObject({ number: 0, text: '0' });
  });

  test('in a conversation each answer is awaited before the next question', async () => {
    const client = await open();
    const answers: Item[] = [];
    let answered: () => void = () => undefined;
    const questions = async function* (): AsyncGenerator<ItemInit> {
      for (let number = 0; number < 50; ++number) {
        const answer = new Promise<void>((resolve) => {
          answered = resolve;
        });
        yield { number };
        await answer;
      }
    };
    for await (const answer of client.talk(questions())) {
      answers.push(answer);
      answered();
    }
    expect(answers.map(({ number }) => number)).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });

  test('the server may end before the client does', async () => {
    const client = await open();
    let left = false;
    const questions = async function* (): AsyncGenerator<ItemInit> {
      try {
        for (;;) yield { text: 'stop' };
      } finally {
        left = true;
      }
    };
    expect(await collect(client.talk(questions()))).toEqual([]);
    expect(left).toBe(true);
    left = false;
    const take = async function* (): AsyncGenerator<ItemInit> {
      try {
        for (;;) yield { text: 'leave' };
      } finally {
        left = true;
      }
    };
    expect(await client.take(take())).toMatchObject({ text: 'left' });
    expect(left).toBe(true);
  });

  test('a client stream may have a large response, and a server stream a large request', async () => {
    const client = await open();
    const item = await client.take([{ text: 'large' }]);
    expect(item.payload).toHaveLength(300_000);
    leaseOf(item)?.release();
    const order = { count: 3, payload: new Uint8Array(500_000) };
    expect(await collect(client.count(order))).toHaveLength(3);
  });

  test('a stream that is not read does not begin', async () => {
    const client = await open();
    const items = client.behave({ count: 3, text: 'x' });
    expect(await client.unary({ count: 5 })).toMatchObject({ number: 5 });
    expect(world.log.produced).toBe(0);
    expect(await collect(items)).toHaveLength(3);
    expect(await collect(items)).toEqual([]);
  });

  test('header, metadata and trailer arrive', async () => {
    const client = await open();
    const seen: string[] = [];
    const told = (what: string) => (metadata: Metadata) => void seen.push(`${what} ${[...metadata]}`);
    const options = { onHeader: told('header'), onTrailer: told('trailer') };
    for await (const _ of client.count({ count: 2 }, { ...options, metadata: { 'x-header': 'please' } })) {
      seen.push('message');
    }
    expect(seen).toEqual(['header x-header,given', 'message', 'message']);
    seen.length = 0;
    for await (const _ of client.behave(
      { count: 1, text: 'metadata' },
      { ...options, metadata: { k: 'v' } },
    )) {
      seen.push('message');
    }
    expect(seen).toEqual(['message', 'trailer k,v']);
  });

  test.each([0, 1, 8000])(
    'a header beside %d bytes of messages takes no space from the messages',
    async (bytes) => {
      const client = await open();
      const headers: Metadata[] = [];
      const onHeader = (header: Metadata) => void headers.push(header);
      const metadata = { 'x-header': 'please' };
      const items = await collect(client.count({ count: 30, bytes }, { onHeader, metadata }));
      expect(items.map(({ number }) => number)).toEqual(Array.from({ length: 30 }, (_, i) => i));
      expect(headers.map((header) => [...header])).toEqual([[['x-header', 'given']]]);
    },
  );

  test('a header that is too large ends the stream', async () => {
    const client = await open();
    const error = await caught(() =>
      collect(client.count({ count: 3 }, { metadata: { 'x-header': 'huge' } })),
    );
    expect(error).toMatchObject({ code: Status.RESOURCE_EXHAUSTED });
    expect(error.rawMessage).toContain('the header: ');
    expect(await client.unary({ count: 1 })).toMatchObject({ number: 1 });
  });

  test('a header may be sent before any message', async () => {
    const client = await open();
    const seen: string[] = [];
    let ask: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      ask = resolve;
    });
    const questions = async function* (): AsyncGenerator<ItemInit> {
      await asked;
      yield { text: 'x' };
    };
    const onHeader = (header: Metadata) => {
      seen.push(`header ${[...header]}`);
      ask();
    };
    const onTrailer = (trailer: Metadata) => void seen.push(`trailer ${[...trailer]}`);
    for await (const item of client.talk(questions(), { onHeader, onTrailer })) seen.push(item.text);
    expect(seen).toEqual(['header x-talk,early', 'x', 'trailer x-end,all']);
  });

  test('an error thrown by a handler arrives after its messages', async () => {
    const errors: string[] = [];
    const client = await open({ onHandlerError: (error: unknown) => errors.push(String(error)) });
    for (const [text, code, message] of [
      ['not found', Status.NOT_FOUND, 'no such thing'],
      ['throw', Status.INTERNAL, 'test.stream.Streams/Behave: the handler failed'],
    ] as const) {
      const got: number[] = [];
      const error = await caught(async () => {
        for await (const { number } of client.behave({ count: 500, text })) got.push(number);
      });
      expect(error).toMatchObject({ code, rawMessage: message, processed: 'yes' });
      expect(got).toHaveLength(500);
    }
    expect(errors).toEqual(['Error: a secret']);
    expect(await caught(() => client.take([{ text: 'what' }]))).toMatchObject({
      code: Status.INVALID_ARGUMENT,
      rawMessage: 'took what',
    });
    expect(await caught(() => client.take([{ text: 'empty' }]))).toMatchObject({ code: Status.INTERNAL });
  });

  test('a method without a handler is UNIMPLEMENTED', async () => {
    const client = await open();
    expect(await caught(() => collect(client.missing([])))).toMatchObject({
      code: Status.UNIMPLEMENTED,
      processed: 'no',
    });
  });

  test('streams beyond the limit wait in the queue', async () => {
    const client = await open({}, { streamsMax: 3 });
    const counts = await Promise.all(
      Array.from(
        { length: 40 },
        async (_, i) => (await collect(client.count({ count: i, bytes: 100 }))).length,
      ),
    );
    expect(counts).toEqual(Array.from({ length: 40 }, (_, i) => i));
  });

  test('nothing is left behind', async () => {
    const client = await open();
    await collect(client.count({ count: 1 }));
    const before = stats();
    for (let i = 0; i < 20; ++i) {
      for await (const item of client.count({ count: 10, bytes: 50_000 })) {
        leaseOf(item)?.release();
        if (i % 2 === 0 && item.number === 3) break;
      }
    }
    expect(await client.unary({ count: 1 })).toMatchObject({ number: 1 });
    // The message that the server was about to write when the loop was left is released a moment later.
    await vi.waitFor(() => expect(stats().arenaLeasedBlocks).toBeLessThanOrEqual(before.arenaLeasedBlocks));
    expect(world.channel.session?.callsInFlight ?? 0).toBe(0);
  });
});

test('streams are divided evenly over two addresses, and a waiting one gets the next free slot', async () => {
  const worlds = await Promise.all([1, 2].map(() => openStreams('shm over unix')));
  const addresses = worlds.map(({ channel }) => channel.address);
  const channel = createChannel(addresses, { streamsMax: 2 });
  const client = createClient(StreamsDefinition, channel);
  await channel.ready();
  await vi.waitFor(() => expect(channel.addresses.every(({ state }) => state === 'ready')).toBe(true));
  const streams = [1, 2, 3, 4].map(() => client.behave({ count: 1, text: 'hang' })[Symbol.asyncIterator]());
  for (const stream of streams) await stream.next();
  expect(worlds.map(({ log }) => log.produced)).toEqual([2, 2]);
  // All slots are in use, so the next call gets the slot of the call that ends, wherever that slot was.
  const waiting = collect(client.count({ count: 5 }));
  await streams[2]!.return?.();
  expect(await waiting).toHaveLength(5);
  await Promise.all(streams.map((stream) => stream.return?.()));
  await channel.close();
  await Promise.all(worlds.map((world) => world.close()));
});
