/**
 * Tests parts of streams that are sent in segments. Such parts arrive whole and in order, among small and
 * large parts.
 */
import { createClient, type Fabric, stats } from 'rdma-rpc';
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

/**
 * `medium` is the number of messages that do not fit into a slot (17 KiB on shm, 8 KiB on tcp), but have less
 * than 32 KiB. Two more messages are larger.
 */
describe.each<[Way, Fabric, number]>([
  ['shm over unix', 'shm', 5],
  ['tcp', 'tcp', 6],
])('%s', (way, fabric, medium) => {
  test('messages of all tiers arrive in both directions', async () => {
    world = await openStreams(way);
    const client = createClient(StreamsDefinition, world.channel);
    // Counts only the context of this fabric. The context of the other fabric closes when the garbage
    // collector has found the last message of its test, and its counts then disappear.
    const before = stats(fabric);
    for (let round = 0; round < 10; ++round) {
      let next = 0;
      for await (const { number, payload } of client.echo(messages())) {
        expect(number).toBe(next);
        expect(Buffer.compare(payload, Buffer.alloc(sizes[next]!, next + 1))).toBe(0);
        ++next;
      }
      expect(next).toBe(sizes.length);
    }
    // The server's messages may find a buffer that the client has provided for a large message.
    const { segmentedMessages, bulkRequests, bulkResponses } = stats(fabric);
    const segmented = segmentedMessages - before.segmentedMessages;
    expect(segmented).toBeGreaterThan(medium * 10);
    expect(segmented + bulkResponses - before.bulkResponses).toBe((2 * medium + 2) * 10);
    expect(bulkRequests - before.bulkRequests).toBe(2 * 10);
  });
});
