/**
 * Tests staging memory of the default size: the largest allowed message goes through it in both directions.
 */
import { configure, createClient } from 'rdma-rpc';
import { beforeAll, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openWorld, ways } from '../runtime/world.ts';

const valueBytes = 40 << 20;
const messageMaxBytes = valueBytes + 1024;

beforeAll(() => configure({ exposure: 'staging' }));

test.each(ways)('a message of 40 MiB goes out and back, %s', async (way) => {
  const world = await openWorld(way, { messageMaxBytes }, { messageMaxBytes });
  try {
    const client = createClient(EchoDefinition, world.channel);
    const payload = new Uint8Array(valueBytes).fill(7);
    const answer = await client.echo({ payload, number: 1 });
    expect(Buffer.compare(answer.payload, payload)).toBe(0);
  } finally {
    await world.close();
  }
});
