/**
 * Tests many streams of large messages that are not read, beside other calls, in an arena that could hold
 * only a few of their messages.
 */
import {
  allocBuffer,
  type Client,
  configure,
  createClient,
  type Lease,
  leaseOf,
  type RpcError,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import type { Way } from '../runtime/world.ts';
import { type ItemInit, StreamsDefinition } from './gen/stream.rdma.ts';
import { caught, openStreams, type StreamWorld } from './stream-world.ts';

type TestClient = Client<typeof StreamsDefinition>;

const MiB = 1024 ** 2;
const arenaBytes = 64 * MiB;
const largeBytes = 8 * MiB;
const stalledMax = 64;

// Client and server share the arena, so memory that one of them holds is not available to the other.
configure({ arenaBytes, mrCacheBytes: 64 * MiB });

async function* large(count: number, bytes = largeBytes): AsyncGenerator<ItemInit> {
  // The message is encoded in the arena if the fabric cannot expose other memory to the peer.
  const payload = new Uint8Array(bytes);
  for (let number = 0; number < count; ++number) yield { number, payload, text: 'hold' };
}

/** Resolves when nothing in the arena has changed for many round trips. */
async function atRest(client: TestClient): Promise<void> {
  let still = 0;
  for (let before = -1; still < 5; ) {
    for (let i = 0; i < 20; ++i) await client.unary({});
    const { bulkReads, bulkWrites, arenaLeasedBlocks } = stats();
    const now = bulkReads + bulkWrites + arenaLeasedBlocks;
    still = now === before ? still + 1 : 0;
    before = now;
  }
}

/**
 * Checks what must continue beside them: unary calls, large answers, and streams of large messages in both
 * directions.
 */
async function goOn(client: TestClient): Promise<void> {
  for (let i = 0; i < 100; ++i) expect(await client.unary({ count: i })).toMatchObject({ number: i });
  let next = 0;
  for await (const item of client.count({ count: 5, bytes: largeBytes })) {
    expect(item.number).toBe(next++);
    expect(item.payload.byteLength).toBe(largeBytes);
    leaseOf(item)?.release();
  }
  expect(next).toBe(5);
  expect(await client.sum(large(5))).toMatchObject({ number: 10, text: '5' });
}

// This test comes first, because garbage of earlier tests would otherwise be released in the middle of it.
test('an arena that the application has filled refuses with the option to raise', async () => {
  const world = await openStreams('shm over unix');
  const client = createClient(StreamsDefinition, world.channel);
  await client.unary({});
  const leases: Lease[] = [];
  const full = await caught(async () => {
    for (;;) leases.push(allocBuffer(4 * MiB, world.channel));
  });
  expect(full).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, message: /arenaBytes/ });
  for (const call of [() => client.sum(large(1)), () => client.take(large(1))]) {
    const error = await caught(call);
    expect(error).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, message: /arenaBytes/ });
  }
  for (const lease of leases) lease.release();
  await goOn(client);
  await world.close();
});

// The test moves gigabytes in all. The limit is for calls that hang, not for slow calls.
describe.each<Way>(['in process', 'shm over unix', 'tcp'])('%s', { timeout: 240_000 }, (way) => {
  let world: StreamWorld;
  afterEach(async () => {
    await world.close();
  });
  async function open(): Promise<TestClient> {
    world = await openStreams(way, { streamsMax: 80 }, { streamsMax: 80 });
    return createClient(StreamsDefinition, world.channel);
  }

  test('readers that stall hold a small share of the arena, and delay no others', async () => {
    const client = await open();
    const readers = Array.from({ length: stalledMax }, () =>
      client.behave({ count: 3, bytes: largeBytes, text: '' })[Symbol.asyncIterator](),
    );
    const read = async (reader: (typeof readers)[0]): Promise<number> => {
      const { value } = await reader.next();
      leaseOf(value)?.release();
      return value.number;
    };
    expect(await Promise.all(readers.map(read))).toEqual(readers.map(() => 0));
    await atRest(client);
    expect(stats().arenaLeasedBytes).toBeLessThan(arenaBytes / 2);
    await goOn(client);
    expect(await Promise.all(readers.map(read))).toEqual(readers.map(() => 1));
    await Promise.all(readers.map((reader) => reader.return?.()));
    await goOn(client);
  });

  test('handlers that stall hold a small share of the arena, and delay no others', async () => {
    const client = await open();
    const giveUp = new AbortController();
    const calls = Array.from({ length: stalledMax }, () =>
      client.hold(large(4), { signal: giveUp.signal }).catch((error: RpcError) => error.code),
    );
    await atRest(client);
    expect(stats().arenaLeasedBytes).toBeLessThan(arenaBytes / 2);
    await goOn(client);
    giveUp.abort();
    expect(await Promise.all(calls)).toEqual(calls.map(() => Status.CANCELLED));
    await goOn(client);
  });
});
