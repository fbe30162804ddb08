/**
 * A list of 1,000 addresses changes a thousand times. The tests check that memory is freed, that unchanged
 * addresses stay connected, and that the cost of a change depends only on the addresses that change.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClient, type Resolver, type ServerAddress } from 'rdma-rpc';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { everything, runs } from '../extent.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, turn, until } from './bed.ts';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;
let bed: Bed;
beforeEach(() => {
  bed = new Bed();
});
afterEach(() => bed.close());

async function heapBytes(): Promise<number> {
  for (let i = 0; i < 3; ++i) {
    gc();
    await turn();
  }
  return process.memoryUsage().heapUsed;
}

// The subset of this client has some of the servers that stay, of each list.
const subset = { size: 200, clientId: 'client-1' };
test.each<[string, number, object]>([
  // The largest number of addresses to which a channel may connect; longer lists need subsets.
  ['250, all of them used', 250, {}],
  ['1,000, of which the channel uses a subset', 1000, { subset }],
])('one of %s, at a time', async (_, total, options) => {
  const count = everything ? total : 250;
  const staying = Array.from({ length: 10 }, (_, i) => `stays-${i}:1`);
  bed.start(...staying);
  // No server listens at the other addresses.
  const others = Array.from({ length: count - staying.length }, (_, i) => `gone-${i}:1`);
  const list = (): ServerAddress[] => [...staying, ...others].map((address) => ({ address }));
  let push!: (servers?: readonly ServerAddress[]) => void;
  let asked = 0;
  const resolver: Resolver = {
    resolve: async () => {
      ++asked;
      return list();
    },
    watch: (onChange) => {
      push = onChange;
      return () => undefined;
    },
  };
  const channel = bed.channel(resolver, { backoffMs: 60_000, backoffMaxMs: 60_000, ...options });
  const client = createClient(EchoDefinition, channel);
  const used = (): string[] =>
    channel.addresses.filter(({ state }) => state === 'ready').map(({ address }) => address);
  await channel.ready();
  const known = (): string[] => channel.addresses.map(({ address }) => address);
  /**
   * These addresses have been in the subset all the time. The subset may drop an address for a new one that
   * ranks higher.
   */
  let always = staying.filter((address) => known().includes(address));
  await until(() => used().length === always.length);
  let next = 0;
  /** Each change reaches the channel. */
  const change = async (times: number): Promise<void> => {
    for (let i = 0; i < times; ++i, ++next) {
      others[next % others.length] = `new-${next}:1`;
      push(list());
      // Lists that come this fast are combined. The channel uses the waiting list before it asks again.
      const before = asked;
      push();
      await until(() => asked > before);
      const now = new Set(known());
      always = always.filter((address) => now.has(address));
      if (i % 10 === 0) await client.fetch({});
    }
  };
  await change(runs(250));
  const before = await heapBytes();
  await change(runs(1000));
  const grown = (await heapBytes()) - before;
  expect(grown).toBeLessThan(1_000_000);
  expect(channel.addresses).toHaveLength(Math.min(count, 'subset' in options ? subset.size : count));
  expect(always.length).toBeGreaterThan(0);
  for (const address of always) {
    expect(used()).toContain(address);
    expect(bed.dialled.filter((each) => each === address)).toHaveLength(1);
  }
  if (!('subset' in options)) expect(always).toEqual(staying);
});
