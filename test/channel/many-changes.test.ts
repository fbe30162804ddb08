/** A list that changes a thousand times: memory comes back, and unchanged addresses stay connected. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClient, type Resolver, type ServerAddress } from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, turn, until } from './bed.ts';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;
const bed = new Bed();
afterEach(() => bed.close());

async function heapBytes(): Promise<number> {
  for (let i = 0; i < 3; ++i) {
    gc();
    await turn();
  }
  return process.memoryUsage().heapUsed;
}

test('of 250 addresses, one at a time', async () => {
  const staying = Array.from({ length: 10 }, (_, i) => `stays-${i}:1`);
  bed.start(...staying);
  // No server listens at the other addresses.
  const others = Array.from({ length: 240 }, (_, i) => `gone-${i}:1`);
  const list = (): ServerAddress[] => [...staying, ...others].map((address) => ({ address }));
  let push!: (servers: readonly ServerAddress[]) => void;
  const resolver: Resolver = {
    resolve: async () => list(),
    watch: (onChange) => {
      push = onChange;
      return () => undefined;
    },
  };
  const channel = bed.channel(resolver, { backoffMs: 60_000, backoffMaxMs: 60_000 });
  const client = createClient(EchoDefinition, channel);
  const ready = (): number => channel.addresses.filter(({ state }) => state === 'ready').length;
  await channel.ready();
  await until(() => ready() === staying.length);
  let next = 0;
  const change = async (times: number): Promise<void> => {
    for (let i = 0; i < times; ++i, ++next) {
      others[next % others.length] = `new-${next}:1`;
      push(list());
      if (i % 10 === 0) await client.fetch({});
    }
  };
  await change(250);
  const before = await heapBytes();
  await change(1000);
  const grown = (await heapBytes()) - before;
  expect(grown).toBeLessThan(1_000_000);
  expect(channel.addresses).toHaveLength(250);
  expect(ready()).toBe(staying.length);
  const dialled = bed.dialled.filter((address) => address.startsWith('stays-'));
  expect(dialled.sort()).toEqual([...staying].sort());
});
