/**
 * Tests handlers and loops that hold their last message while they wait for the next, as most of them do, for
 * example an echo that yields each received message. All streams together would hold more memory than the
 * arena has. No stream may stall or wait for a garbage collection.
 */
import { fork } from 'node:child_process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { configure, createChannel, createClient, leaseOf, stats } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { StreamMemory } from '../../runtime/stream/stream-memory.ts';
import { until } from '../channel/bed.ts';
import { compiled } from '../runtime/process/processes.ts';
import type { Way } from '../runtime/world.ts';
import { type Item, StreamsDefinition } from './gen/stream.rdma.ts';
import { openStreams, type StreamWorld } from './stream-world.ts';

const KiB = 1024;
const arenaBytes = 64 * KiB * KiB;
configure({ arenaBytes });

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

let world: StreamWorld | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

/** Yields messages, each with different bytes. */
async function* messages(stream: number, sizes: readonly number[]) {
  for (const [number, bytes] of sizes.entries())
    yield { number, payload: new Uint8Array(bytes).fill(stream * 16 + number) };
}

async function echoed(client: EchoClient, stream: number, sizes: readonly number[], releases: boolean) {
  let next = 0;
  let last: Item | undefined;
  for await (const item of client.echo(messages(stream, sizes))) {
    const content = (stream * 16 + next) & 255;
    expect([item.number, item.payload.byteLength]).toEqual([next, sizes[next]]);
    expect([item.payload[0], item.payload.at(-1)]).toEqual([content, content]);
    // The previous message is also unchanged, because its memory has not been reused.
    if (!releases && last !== undefined) expect(last.payload.at(-1)).toBe((content - 1) & 255);
    if (releases) leaseOf(item)?.release();
    last = item;
    ++next;
  }
  return next;
}
type EchoClient = ReturnType<typeof createClient<typeof StreamsDefinition>>;

/** Returns random numbers by mulberry32. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

describe('a server in a separate process', { timeout: 240_000 }, () => {
  test.each([
    ['a few large ones', 4, 6, arenaBytes / 4 - 16 * KiB],
    ['many of a 64th', 63, 4, arenaBytes / 64],
  ])('%s', async (_, streams, count, bytes) => {
    const child = fork(compiled('echo-process', 'stream'), [String(arenaBytes)]);
    const channel = await new Promise<string>((resolve, reject) => {
      child.once('message', resolve as (address: unknown) => void);
      child.once('exit', () => reject(new Error('the server has ended')));
    }).then((address) => createChannel(address, { streamsMax: 64 }));
    try {
      const client = createClient(StreamsDefinition, channel);
      const sizes = new Array<number>(count).fill(bytes);
      const all = Array.from({ length: streams }, (_each, stream) => echoed(client, stream, sizes, true));
      expect(await Promise.all(all)).toEqual(all.map(() => count));
    } finally {
      await channel.close();
      child.kill('SIGKILL');
    }
  });
});

describe.each<Way>(['in process', 'in process, loopback', 'shm over unix'])(
  '%s',
  { timeout: 120_000 },
  (way) => {
    test.each([1, 2, 3])('sizes of all kinds, seed %i', async (seed) => {
      world = await openStreams(way, { streamsMax: 32 }, { streamsMax: 32 });
      const client = createClient(StreamsDefinition, world.channel);
      const next = random(seed);
      const all = Array.from({ length: 24 }, (_each, stream) => {
        const sizes = Array.from({ length: 6 }, () => Math.floor(2 ** (10 + next() * 11)));
        return echoed(client, stream, sizes, stream % 2 === 0);
      });
      expect(await Promise.all(all)).toEqual(all.map(() => 6));
    });

    test('while there is room, messages stay in the arena', async () => {
      // Memory that earlier tests have not released is not available.
      await until(() => {
        collect();
        return stats().arenaLeasedBytes === 0;
      });
      world = await openStreams(way);
      const client = createClient(StreamsDefinition, world.channel);
      let leases = 0;
      for await (const item of client.echo(messages(1, new Array<number>(20).fill(128 * KiB)))) {
        if (leaseOf(item) !== undefined) ++leases;
        leaseOf(item)?.release();
      }
      expect(leases).toBe(20);
    });
  },
);

test('memory that streams hold besides the arena is limited, and is freed', () => {
  let arenaLeasedBytes = 0;
  const memory = new StreamMemory({
    native: { stats: () => ({ ...stats(), arenaLeasedBytes }) } as never,
    sessions: { loops: false },
  });
  const size = arenaBytes / 8;
  arenaLeasedBytes = arenaBytes;
  const copied = Array.from({ length: 10 }, () => memory.copy(size));
  expect(copied.filter((each) => each !== undefined)).toHaveLength(8);
  expect(memory.copiedBytes).toBe(arenaBytes);
  for (const each of copied) each?.forget();
  for (const each of copied) each?.forget();
  expect(memory.copiedBytes).toBe(0);
  // Almost half of the arena may be kept, and less when the next message would not fit.
  for (const [leased, stays] of [
    [(arenaBytes * 31) / 64, true],
    [(arenaBytes * 31) / 64 + 1, false],
  ] as const) {
    arenaLeasedBytes = leased;
    expect(memory.copy(size) === undefined).toBe(stays);
  }
});
