/** Parts of streams that go in segments: they arrive whole and in order, among small and large ones. */
import { createClient, stats } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import type { Way } from '../runtime/world.ts';
import { StreamsDefinition } from './gen/stream.rdma.ts';
import { openStreams, type StreamWorld } from './stream-world.ts';

let world: StreamWorld | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

const sizes = [10, 18_000, 32_000, 100, 60_000, 8_200, 17_408, 40_000, 20_000, 0, 30_000];

async function* messages() {
  for (const [number, bytes] of sizes.entries())
    yield { number, payload: new Uint8Array(bytes).fill(number + 1) };
}

describe.each<Way>(['shm over unix', 'tcp'])('%s', (way) => {
  test('messages of all tiers, both ways', async () => {
    world = await openStreams(way);
    const client = createClient(StreamsDefinition, world.channel);
    const before = stats().segmentedMessages;
    for (let round = 0; round < 10; ++round) {
      let next = 0;
      for await (const { number, payload } of client.echo(messages())) {
        expect(number).toBe(next);
        expect(Buffer.compare(payload, Buffer.alloc(sizes[next]!, next + 1))).toBe(0);
        ++next;
      }
      expect(next).toBe(sizes.length);
    }
    // All of the client's. Of the server's some find a place that the client has given for the large one before.
    expect(stats().segmentedMessages - before).toBeGreaterThan(5 * 10);
  });
});
