/**
 * Client and server share the smallest possible arena, with far more calls at once than the arena has room
 * for. Each call ends, and no call waits for ever.
 */
import { configure, createClient, leaseOf, RpcError, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openWorld, type Way, type World } from '../runtime/world.ts';

const MiB = 1024 ** 2;
const arenaBytes = 4 * MiB;
const callsAtOnce = 48;

configure({ arenaBytes, mrCacheBytes: 4 * MiB });

/** Makes a text of Latin letters. Text is encoded in the arena, unlike bytes, which are sent in place. */
function text(bytes: number, seed: number): string {
  return String.fromCharCode(97 + (seed % 26)).repeat(bytes);
}

// A call may wait 10 s for memory, and then fail. The limit is for calls that hang, not for slow calls.
describe.each<Way>(['in process', 'in process, loopback', 'shm over unix', 'tcp'])(
  '%s',
  { timeout: 240_000 },
  (way) => {
    let world: World;
    afterEach(async () => {
      await world.close();
    });

    test.each([20_000, 60_000])('echoes of %d bytes, both ways at once', async (bytes) => {
      world = await openWorld(way);
      const back = await openWorld(way);
      let refused = 0;
      const call = async (to: World, seed: number): Promise<void> => {
        const client = createClient(EchoDefinition, to.channel);
        const sent = { text: text(bytes, seed), payload: new Uint8Array(bytes).fill(seed) };
        try {
          const answer = await client.echo(sent);
          expect(answer.text).toBe(sent.text);
          expect(Buffer.compare(answer.payload, sent.payload)).toBe(0);
          leaseOf(answer)?.release();
        } catch (error) {
          if (!(error instanceof RpcError)) throw error;
          ++refused;
          expect(error).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, message: /arenaBytes/ });
        }
      };
      for (let round = 0; round < 3; ++round) {
        const calls = Array.from({ length: callsAtOnce }, (_, i) => call(i % 2 === 0 ? world : back, i));
        await Promise.all(calls);
      }
      expect(refused).toBeLessThan(3 * callsAtOnce);
      // One call at a time always fits.
      refused = 0;
      for (let i = 0; i < 10; ++i) await call(i % 2 === 0 ? world : back, i);
      expect(refused).toBe(0);
      await back.close();
    });

    test('the error for a message larger than the arena contains the size of the arena', async () => {
      world = await openWorld(way);
      const client = createClient(EchoDefinition, world.channel);
      for (const request of [
        { payload: new Uint8Array(arenaBytes + 1) },
        { text: text(arenaBytes + 1, 0) },
      ]) {
        await expect(client.echo(request)).rejects.toMatchObject({
          code: Status.RESOURCE_EXHAUSTED,
          processed: 'no',
          message: expect.stringMatching(/(arena|mrCache)Bytes/),
        });
      }
      expect(await client.echo({ number: 1 })).toMatchObject({ number: 1 });
    });
  },
);
