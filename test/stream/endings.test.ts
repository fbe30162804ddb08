/**
 * Tests the ends of streams that do not end by themselves: left, cancelled, timed out, failed, drained, or
 * lost.
 */
import { type Client, createChannel, createClient, leaseOf, RpcError, Status, stats } from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { isInProcess, socketPath, type Way } from '../runtime/world.ts';
import { type ItemInit, StreamsDefinition } from './gen/stream.rdma.ts';
import { caught, collect, openStreams, type StreamWorld } from './stream-world.ts';

type TestClient = Client<typeof StreamsDefinition>;

/** Returns endless requests, and the number of requests that were taken. */
function endless(item: ItemInit): {
  requests: AsyncIterable<ItemInit>;
  taken: () => number;
  left: () => boolean;
} {
  let taken = 0;
  let left = false;
  const requests = (async function* () {
    try {
      for (;;) {
        ++taken;
        yield item;
      }
    } finally {
      left = true;
    }
  })();
  return { requests, taken: () => taken, left: () => left };
}

/** Resolves when `count` has not changed for several round trips. */
async function atRest(client: TestClient, count: () => number): Promise<void> {
  for (let before = -1; before !== count(); ) {
    before = count();
    for (let i = 0; i < 10; ++i) await client.unary({});
  }
}

describe.each<Way>(['in process', 'in process, loopback', 'shm over unix', 'tcp'])('%s', (way) => {
  let world: StreamWorld;
  afterEach(async () => {
    await world.close();
  });
  async function open(...options: [object?, object?]): Promise<TestClient> {
    world = await openStreams(way, ...options);
    return createClient(StreamsDefinition, world.channel);
  }
  const finished = (...names: string[]) => vi.waitFor(() => expect(world.log.finished).toEqual(names));

  test('after a break the finally blocks of the handler run, and its signal fires', async () => {
    const client = await open();
    for await (const item of client.behave({ count: 1_000_000, text: 'x' })) if (item.number === 10) break;
    await finished('x');
    expect(world.log.aborted).toEqual([Status.CANCELLED]);
    expect(world.log.produced).toBeLessThan(20_000);
    expect(await client.unary({ count: 1 })).toMatchObject({ number: 1 });
  });

  test('after an error in the loop the same happens', async () => {
    const client = await open();
    const error = new Error('mine');
    const loop = async () => {
      for await (const _ of client.behave({ count: 1_000_000, text: 'x' })) throw error;
    };
    expect(await caught(loop)).toBe(error);
    await finished('x');
  });

  test('a break while the handler waits ends the handler', async () => {
    const client = await open();
    for await (const _ of client.behave({ count: 1, text: 'hang' })) break;
    await finished('hang');
  });

  test('a stream that is left before it began sends nothing', async () => {
    const client = await open();
    const items = client.behave({ count: 1, text: 'x' })[Symbol.asyncIterator]();
    await items.return?.();
    expect(await items.next()).toEqual({ done: true, value: undefined });
    await client.unary({});
    expect(world.log.produced).toBe(0);
  });

  test.each([0, 1, 5, 300])('the signal may fire after %d messages', async (after) => {
    const client = await open();
    const controller = new AbortController();
    const reason = new Error('enough');
    let count = 0;
    const error = await caught(async () => {
      if (after === 0) controller.abort(reason);
      const items = client.behave({ count: 1_000_000, text: 'hang' }, { signal: controller.signal });
      for await (const _ of items) if (++count === after) controller.abort(reason);
    });
    expect(error).toMatchObject({ code: Status.CANCELLED, cause: reason });
    expect(error.processed).toBe(after === 0 ? 'no' : 'maybe');
    expect(count).toBe(after);
    if (after > 0) await finished('hang');
  });

  test('the signal may fire while the answer is awaited', async () => {
    const client = await open();
    const controller = new AbortController();
    const error = await caught(async () => {
      for await (const _ of client.behave({ count: 1, text: 'hang' }, { signal: controller.signal }))
        setImmediate(() => controller.abort());
    });
    expect(error.code).toBe(Status.CANCELLED);
    await finished('hang');
  });

  test('the deadline may pass in the handler, in a handler that never checks it, and while sending', async () => {
    const client = await open();
    await client.unary({});
    for (const text of ['hang', 'never']) {
      const error = await caught(() => collect(client.behave({ count: 3, text }, { timeoutMs: 1000 })));
      expect(error.code).toBe(Status.DEADLINE_EXCEEDED);
    }
    await finished('hang');
    expect(world.log.aborted).toEqual([Status.DEADLINE_EXCEEDED, Status.DEADLINE_EXCEEDED]);
    const { requests, left } = endless({ text: 'all' });
    expect((await caught(() => client.take(requests, { timeoutMs: 1000 }))).code).toBe(
      Status.DEADLINE_EXCEEDED,
    );
    await vi.waitFor(() => expect(left()).toBe(true));
    await vi.waitFor(() => expect(world.log.caught).toEqual([Status.DEADLINE_EXCEEDED]));
    expect(await caught(() => collect(client.behave({}, { timeoutMs: 0 })))).toMatchObject({
      code: Status.DEADLINE_EXCEEDED,
      processed: 'no',
    });
  });

  test('when the requests throw, the caller gets that error, and the handler is notified', async () => {
    const client = await open();
    const error = new Error('no more');
    const requests = async function* (): AsyncGenerator<ItemInit> {
      yield { text: 'all' };
      yield {};
      await vi.waitFor(() => expect(world.log.produced).toBe(1));
      throw error;
    };
    expect(await caught(() => client.take(requests()))).toBe(error);
    await vi.waitFor(() => expect(world.log.caught).toEqual([Status.CANCELLED]));
    await finished('aborted');
    expect(await caught(() => collect(client.echo(requests())))).toBe(error);
  });

  test('requests that cannot be sent end the stream', async () => {
    const errors: unknown[] = [];
    const client = await open({ onHandlerError: (error: unknown) => errors.push(error) });
    const wrong = { number: 'one' } as unknown as ItemInit;
    for (const requests of [[wrong], [{ text: 'all' }, wrong], [{ payload: 5 } as never]]) {
      const error = await caught(() => client.take(requests));
      expect(error.code).toBe(Status.INTERNAL);
      expect(error.rawMessage).toMatch(
        /^test.stream.Streams\/Take: the request cannot be sent: test.stream.Item/,
      );
    }
    expect(await caught(() => collect(client.count({ count: 'x' } as never)))).toMatchObject({
      code: Status.INTERNAL,
      processed: 'no',
    });
    expect(await caught(() => client.take(5 as never))).toBeInstanceOf(TypeError);
    expect(await caught(() => client.take([], { into: 5 } as never))).toBeInstanceOf(TypeError);
  });

  test.each([
    ['on the way there', { messageMaxBytes: 50_000 }, {}, 'the server accepts 50000'],
    ['on the way back', {}, { messageMaxBytes: 50_000 }, 'the client accepts 50000'],
  ])('a message that is too large %s', async (_, server, channel, text) => {
    if (isInProcess(way)) server = channel = { messageMaxBytes: 50_000 };
    const client = await open(server, channel);
    const payload = new Uint8Array(60_000);
    const error = await caught(() =>
      text.includes('server') || isInProcess(way)
        ? collect(client.echo([{ number: 1 }, { payload }]))
        : collect(client.count({ count: 3, bytes: 60_000 })),
    );
    expect(error.code).toBe(Status.RESOURCE_EXHAUSTED);
    expect(error.rawMessage).toContain(isInProcess(way) ? 'accepts 50000' : text);
    expect(await client.unary({ count: 1 })).toMatchObject({ number: 1 });
  });

  test.each([10, 100_000])('a slow reader of %d bytes stops only its sender', async (bytes) => {
    const client = await open();
    const items = client.behave({ count: 1_000_000, bytes, text: 'x' })[Symbol.asyncIterator]();
    leaseOf((await items.next()).value)?.release();
    await atRest(client, () => world.log.produced);
    expect(world.log.produced).toBeLessThan(bytes > 1000 ? 20 : 10_000);
    expect(await collect(client.count({ count: 5000 }))).toHaveLength(5000);
    for (let i = 1; i < 100; ++i) {
      const { value } = await items.next();
      expect(value.number).toBe(i);
      leaseOf(value)?.release();
    }
    await items.return?.();
    await finished('x');
  });

  test.each([0, 100_000])('a slow handler of requests with %d bytes stops the client', async (bytes) => {
    const client = await open();
    const { requests, taken, left } = endless({ text: 'hold', payload: new Uint8Array(bytes) });
    const controller = new AbortController();
    const sum = client.hold(requests, { signal: controller.signal }).catch((error: RpcError) => error);
    await vi.waitFor(() => expect(taken()).toBeGreaterThan(3));
    await atRest(client, taken);
    expect(taken()).toBeLessThan(bytes > 1000 ? 20 : 10_000);
    expect(await client.sum(Array.from({ length: 3000 }, () => ({ number: 1 })))).toMatchObject({
      number: 3000,
    });
    controller.abort();
    expect(await sum).toMatchObject({ code: Status.CANCELLED });
    await vi.waitFor(() => expect(left()).toBe(true));
  });

  test('a handler that stops reading does not stop the client', async () => {
    const client = await open();
    const requests = Array.from({ length: 30_000 }, (_, i) => ({ text: i === 0 ? 'first' : 'more' }));
    expect(await collect(client.first(requests))).toMatchObject([{ text: 'first' }, { number: 30_000 }]);
  });

  test('several next() may be called at once, also after the end', async () => {
    const client = await open();
    const items = client.count({ count: 2 })[Symbol.asyncIterator]();
    const all = await Promise.all([items.next(), items.next(), items.next(), items.next()]);
    expect(all.map(({ done, value }) => (done ? 'done' : value.number))).toEqual([0, 1, 'done', 'done']);
    expect((await items.next()).done).toBe(true);
    const failing = client.behave({ text: 'not found' })[Symbol.asyncIterator]();
    const results = await Promise.allSettled([failing.next(), failing.next()]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  });

  test('the channel may close in the middle', async () => {
    const client = await open();
    const error = await caught(async () => {
      for await (const _ of client.behave({ count: 1, text: 'hang' })) void world.channel.close();
    });
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    await finished('hang');
    expect(await caught(() => collect(client.count({ count: 1 })))).toMatchObject({
      code: Status.UNAVAILABLE,
      processed: 'no',
    });
  });

  test('no more streams wait than the limit allows', async () => {
    const client = await open({}, { streamsMax: 1, queueMax: 2 });
    const open1 = client.behave({ count: 1, text: 'hang' })[Symbol.asyncIterator]();
    await open1.next();
    const waiting = [1, 2].map((count) => collect(client.count({ count })));
    expect(await caught(() => collect(client.count({ count: 3 })))).toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      processed: 'no',
    });
    const controller = new AbortController();
    await open1.return?.();
    expect((await Promise.all(waiting)).map((items) => items.length)).toEqual([1, 2]);
    const again = client.behave({ count: 1, text: 'hang' })[Symbol.asyncIterator]();
    await again.next();
    const cancelled = caught(() => collect(client.count({ count: 1 }, { signal: controller.signal })));
    const late = caught(() => collect(client.count({ count: 1 }, { timeoutMs: 20 })));
    controller.abort();
    expect(await cancelled).toMatchObject({ code: Status.CANCELLED, processed: 'no' });
    expect(await late).toMatchObject({ code: Status.DEADLINE_EXCEEDED, processed: 'no' });
    await again.return?.();
  });

  test('slots and memory are free again after a thousand streams that were left at any point', async () => {
    const client = await open({}, { streamsMax: 4 });
    await collect(client.count({ count: 1 }));
    const before = stats();
    await Promise.all(
      Array.from({ length: 1000 }, async (_, i) => {
        const bytes = i % 10 === 0 ? 30_000 : 10;
        const take = i % 7;
        let taken = 0;
        for await (const item of client.behave({ count: i % 13, bytes, text: 'x' })) {
          leaseOf(item)?.release();
          if (++taken > take) break;
        }
      }),
    );
    await vi.waitFor(() => expect(world.log.finished.length).toBeGreaterThanOrEqual(900));
    await vi.waitFor(() => expect(stats().arenaLeasedBlocks).toBeLessThanOrEqual(before.arenaLeasedBlocks));
    expect(await collect(client.count({ count: 2000 }))).toHaveLength(2000);
  });
});

describe('a server that shuts down', () => {
  test('waits for streams, until the end of its grace period', async () => {
    const world = await openStreams('shm over unix');
    const client = createClient(StreamsDefinition, world.channel);
    const items = client.behave({ count: 5000, text: 'x' })[Symbol.asyncIterator]();
    await items.next();
    const down = world.server!.shutdown({ graceMs: 20_000 });
    let count = 1;
    while (!(await items.next()).done) ++count;
    expect(count).toBe(5000);
    await down;
    expect(world.log.finished).toEqual(['x']);
    await world.close();
  });

  test('ends the remaining streams', async () => {
    const world = await openStreams('shm over unix');
    const client = createClient(StreamsDefinition, world.channel);
    const items = client.behave({ count: 1, text: 'hang' })[Symbol.asyncIterator]();
    await items.next();
    const last = items.next().catch((error: RpcError) => error);
    await world.server!.shutdown({ graceMs: 10 });
    expect(await last).toMatchObject({ code: Status.UNAVAILABLE });
    await vi.waitFor(() => expect(world.log.finished).toEqual(['hang']));
    expect(world.log.aborted).toEqual([Status.CANCELLED]);
    await world.close();
  });
});

test('a stream to a server that cannot be reached fails', async () => {
  const channel = createChannel(`unix:${socketPath()}`);
  const client = createClient(StreamsDefinition, channel);
  expect(await caught(() => collect(client.count({})))).toMatchObject({
    code: Status.UNAVAILABLE,
    processed: 'no',
  });
  expect(await caught(() => client.sum([]))).toBeInstanceOf(RpcError);
  await channel.close();
});
