/**
 * Tests the option for staging memory, on devices that also have windows. Peers can reach different memory,
 * but the calls are the same.
 */
import { configure, createClient, Status } from 'rdma-rpc';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openWorld, type World, ways } from '../runtime/world.ts';

beforeAll(() => configure({ exposure: 'staging', stagingBytes: 4 << 20 }));

// Loopback exposes no memory, so it has no staging.
describe.each(ways.filter((way) => way !== 'in process, loopback'))('staging, %s', (way) => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld(way, {}, { timeoutMs: 10_000 });
  });
  afterAll(() => world.close());

  test('the session reports how it exposes memory', async () => {
    await world.channel.ready();
    expect(world.channel.session?.exposure).toBe('staging');
  });

  test.each([10, 5_000, 100_000, 3 << 20])('payloads of %d bytes go out and back', async (bytes) => {
    const client = createClient(EchoDefinition, world.channel);
    const payload = new Uint8Array(bytes).fill(7);
    const answer = await client.echo({ payload, number: 1 });
    expect(Buffer.compare(answer.payload, payload)).toBe(0);
  });

  test('a message that is larger than stagingBytes is refused, and the error names the option', async () => {
    const client = createClient(EchoDefinition, world.channel);
    const call = client.echo({ payload: new Uint8Array(5 << 20), number: 1 });
    await expect(call).rejects.toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      message: expect.stringContaining('stagingBytes'),
      processed: 'no',
    });
    expect((await client.echo({ payload: new Uint8Array(10), number: 2 })).payload).toHaveLength(10);
  });
});
