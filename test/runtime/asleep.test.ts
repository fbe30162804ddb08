/** Tests calls when neither side ever polls. A side that has work left must stay awake. */
import { configure, createClient } from 'rdma-rpc';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { openWorld, type World, ways } from './world.ts';

beforeAll(() => configure({ polling: 'event' }));

describe.each(ways)('%s, asleep between events', (way) => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld(way, {}, { timeoutMs: 10_000 });
  });
  afterAll(() => world.close());

  // The message is larger than the amount that one iteration of the pump moves. A completion alone would not
  // wake the server for the rest of a WRITE.
  test.each([100, 8_000, 1 << 20, 16 << 20, 40 << 20])(
    'payloads of %d bytes are sent and returned',
    async (bytes) => {
      const client = createClient(EchoDefinition, world.channel);
      const payload = new Uint8Array(bytes).fill(7);
      payload[bytes - 1] = 9;
      const answers = await Promise.all(
        Array.from({ length: 2 }, (_, number) => client.echo({ payload, number })),
      );
      for (const [number, answer] of answers.entries()) {
        expect(answer.number).toBe(number);
        expect(Buffer.compare(answer.payload, payload)).toBe(0);
      }
    },
  );
});
