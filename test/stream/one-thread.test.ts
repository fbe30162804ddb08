/**
 * A client and a server on one thread share one arena. Echoes of messages of a quarter of it do not wait for
 * each other, although both ends hold their last message.
 */
import { configure, createClient, leaseOf } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import type { Way } from '../runtime/world.ts';
import { StreamsDefinition } from './gen/stream.rdma.ts';
import { openStreams, type StreamWorld } from './stream-world.ts';

const KiB = 1024;
const arenaBytes = 16 * KiB * KiB;
configure({ arenaBytes });

let world: StreamWorld | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

async function* messages(count: number, bytes: number) {
  for (let number = 0; number < count; ++number)
    yield { number, payload: new Uint8Array(bytes).fill(number + 1) };
}

describe.each<Way>(['in process', 'in process, loopback', 'shm over unix', 'tcp'])(
  '%s',
  { timeout: 60_000 },
  (way) => {
    test.each([
      [1, 4],
      [2, 4],
      [4, 4],
      [16, 16],
    ])('%i streams of messages of 1/%i of the arena', async (streams, share) => {
      world = await openStreams(way);
      const client = createClient(StreamsDefinition, world.channel);
      const all = Array.from({ length: streams }, async () => {
        let next = 0;
        for await (const item of client.echo(messages(6, arenaBytes / share - 16 * KiB))) {
          expect([item.number, item.payload[0], item.payload.at(-1)]).toEqual([next, next + 1, next + 1]);
          leaseOf(item)?.release();
          ++next;
        }
        return next;
      });
      // A call that waited for the arena would be refused after 10 s.
      expect(await Promise.all(all)).toEqual(all.map(() => 6));
    });
  },
);
