/**
 * Tests getters of a message without a schema, which are application code that runs while the message is
 * measured and packed. A getter can affect only its own call, and no other call on the connection.
 */
import { type Channel, createChannel, createClient, createServer, type Server } from 'rdma-rpc';
import { defineService, method } from 'rdma-rpc/msgpack';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const Echo = defineService({ name: 'test.Getters', methods: { echo: method<unknown, unknown>() } });

let server: Server;
let channel: Channel;
const client = () => createClient(Echo, channel);

beforeAll(async () => {
  server = createServer({ log: () => undefined }).add(Echo, { echo: (message) => message });
  channel = createChannel(await server.listen('127.0.0.1:0'), { fabric: 'shm' });
  await channel.ready();
});
afterAll(async () => {
  await channel.close();
  await server.shutdown();
});

/** Makes the same call among unrelated calls. */
async function among<T>(call: () => Promise<T>): Promise<PromiseSettledResult<T>> {
  const small = (from: number) => Array.from({ length: 6 }, (_, i) => client().echo(`bystander ${from + i}`));
  const before = small(0);
  const [outcome] = await Promise.allSettled([call()]);
  expect(await Promise.all([...before, ...small(6)])).toEqual(
    Array.from({ length: 12 }, (_, i) => `bystander ${i}`),
  );
  return outcome;
}

const sizes = [10, 5000, 16_384, 18_000, 40_000, 200_000];
const pairs = sizes.flatMap((outer) => sizes.map((inner) => [outer, inner] as const));

describe('a getter', () => {
  test.each(pairs)(
    'in a message of %i bytes that sends one of %i bytes by the same method',
    async (outer, inner) => {
      const inners: Promise<unknown>[] = [];
      const outcome = await among(() =>
        client().echo({
          before: 'text',
          big: new Uint8Array(outer).fill(1),
          get x() {
            inners.push(client().echo({ b: new Uint8Array(inner).fill(2), c: [1] }));
            return 5;
          },
          after: [{ y: 'text' }],
        }),
      );
      expect(outcome.status).toBe('fulfilled');
      const { value } = outcome as PromiseFulfilledResult<unknown>;
      const { big, ...rest } = value as { big: Uint8Array };
      expect(rest).toEqual({ before: 'text', x: 5, after: [{ y: 'text' }] });
      expect([big.length, big.every((byte) => byte === 1)]).toEqual([outer, true]);
      expect(inners.length).toBeGreaterThan(0);
      for (const each of await Promise.all(inners)) {
        const { b, c } = each as { b: Uint8Array; c: unknown };
        expect([b.length, b.every((byte) => byte === 2), c]).toEqual([inner, true, [1]]);
      }
    },
  );

  const growths = [1, 2, 3, 4].flatMap((reads) =>
    [3000, 9000, 18_000, 100_000].map((bytes) => [reads, bytes] as const),
  );
  test.each(growths)('whose value grows after %i reads, to %i characters', async (reads, bytes) => {
    for (const big of [0, 20_000]) {
      let looks = 0;
      const grown = 'x'.repeat(bytes);
      const outcome = await among(() =>
        client().echo({
          big: new Uint8Array(big),
          get text() {
            return looks++ < reads ? '' : grown;
          },
        }),
      );
      if (outcome.status === 'rejected') {
        expect(String(outcome.reason)).toMatch(/it became larger while it was being encoded/);
      } else {
        expect(['', grown]).toContain((outcome.value as { text: string }).text);
      }
    }
  });
});
