/** Tests resolvers that push wrong, doubled, empty, long and very many lists while calls are made. */
import { createClient, type Resolver, type ServerAddress } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runs } from '../extent.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Random } from '../states/random.ts';
import { Bed, until } from './bed.ts';
import { policies } from './policy-table.ts';

type List = readonly (string | ServerAddress)[];

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
  bed.start('a:1', 'b:1', 'c:1');
});
afterEach(() => bed.close());

/** A resolver whose lists a test pushes. The resolver's own answer stays the first list. */
class Pusher implements Resolver {
  push: (list?: List) => void = () => undefined;
  readonly #first: List;

  constructor(first: List) {
    this.#first = first;
  }

  resolve = async (): Promise<List> => this.#first;

  watch(onChange: (list?: List) => void): () => void {
    this.push = onChange;
    return () => undefined;
  }
}

const wrong: readonly [string, unknown][] = [
  ['an empty list', []],
  ['null', null],
  ['a number', 7],
  ['a list of null', [null]],
  ['a list of objects without an address', ['a:1', {}]],
  ['an address that is a number', [{ address: 5 }]],
  ['an address with a getter that throws', [Object.defineProperty({}, 'address', { get: () => nothing() })]],
  ['a list that is too long', Array.from({ length: 257 }, (_, i) => `x-${i}:1`)],
  ['weight 0', [{ address: 'a:1', weight: 0 }]],
  ['a negative weight', ['b:1', { address: 'a:1', weight: -1 }]],
  ['weight NaN', [{ address: 'a:1', weight: Number.NaN }]],
  ['an infinite weight', [{ address: 'a:1', weight: Infinity }]],
  ['a weight that is a text', [{ address: 'a:1', weight: '1' }]],
  ['a zone that is a number', [{ address: 'a:1', zone: 4 }]],
  ['attributes that are a list', [{ address: 'a:1', attributes: ['x'] }]],
  ['doors that are a text', [{ address: 'a:1', doors: 'b:1' }]],
];
function nothing(): never {
  throw new Error('not this one');
}

test.each(wrong)('%s that is pushed changes nothing, and the channel can say why', async (_, list) => {
  const resolver = new Pusher(['a:1', 'b:1']);
  // The resolver is not asked again in this test.
  const channel = bed.channel(resolver, { backoffMs: 600_000, backoffMaxMs: 600_000 });
  const client = createClient(EchoDefinition, channel);
  await channel.ready();
  await until(() => channel.addresses.every(({ state }) => state === 'ready'));
  for (let i = 0; i < 100; ++i) resolver.push(list as List);
  expect(channel.addresses.map(({ address, stale }) => [address, stale])).toEqual([
    ['a:1', true],
    ['b:1', true],
  ]);
  for (let i = 0; i < 10; ++i) expect('a:1 b:1').toContain((await client.fetch({})).text);
  resolver.push(['b:1']);
  await until(() => channel.addresses.length === 1);
  expect(channel.addresses).toMatchObject([{ address: 'b:1', stale: false }]);
  expect(await client.fetch({})).toMatchObject({ text: 'b:1' });
  expect(bed.dialled).toEqual(['a:1', 'b:1']);
});

describe.each(policies)('%s', (_, { options }) => {
  test('10,000 times the same list, with addresses that are doubled: one connection to each', async () => {
    const resolver = new Pusher(['a:1', 'b:1', 'c:1']);
    const channel = bed.channel(resolver, options);
    const client = createClient(EchoDefinition, channel);
    await channel.ready();
    const count = options.loadBalancing === 'pick-first' ? 1 : 3;
    await until(() => channel.addresses.filter(({ state }) => state === 'ready').length === count);
    for (let i = 0; i < runs(10_000); ++i) {
      resolver.push(['a:1', 'b:1', { address: 'a:1', weight: 5 }, 'c:1', 'b:1']);
      if (i % 100 === 0) await client.fetch({});
    }
    expect(channel.addresses.map(({ address }) => address)).toEqual(['a:1', 'b:1', 'c:1']);
    expect(bed.dialled).toHaveLength(count);
  });

  test('lists that change at random, with zones and weights that come and go: no call fails', async () => {
    const random = new Random(43);
    const resolver = new Pusher(['a:1', 'b:1', 'c:1']);
    const channel = bed.channel(resolver, { zone: 'x', backoffMs: 1, backoffMaxMs: 5, ...options });
    const client = createClient(EchoDefinition, channel);
    await channel.ready();
    let over = false;
    const callers = Array.from({ length: 4 }, async () => {
      while (!over) await client.fetch({}, { waitForReady: true, timeoutMs: 60_000 });
    });
    for (let i = 0; i < runs(200); ++i) {
      const kept = ['a:1', 'b:1', 'c:1'].filter(() => random.below(2) === 0);
      resolver.push(
        kept.map((address) => ({
          address,
          weight: 1 + random.below(100),
          ...(random.below(2) === 0 && { zone: random.below(2) === 0 ? 'x' : 'y' }),
        })),
      );
      await client.fetch({}, { waitForReady: true, timeoutMs: 60_000 });
    }
    over = true;
    await Promise.all(callers);
    expect(channel.addresses.length).toBeGreaterThan(0);
  });
});

test('long lists that are pushed without end are combined, and the newest of them is used', async () => {
  const resolver = new Pusher(['a:1']);
  const channel = bed.channel(resolver);
  const client = createClient(EchoDefinition, channel);
  await channel.ready();
  let read = 0;
  const others = Array.from({ length: 200 }, (_, i) => `x-${i}:1`);
  const listed = (last: string): ServerAddress[] =>
    ['a:1', ...others, last].map((address) => ({
      get address() {
        ++read;
        return address;
      },
    }));
  for (let i = 0; i < 1000; ++i) resolver.push(listed(`y-${i}:1`));
  resolver.push(listed('z:1'));
  await until(() => channel.addresses.at(-1)!.address === 'z:1');
  expect(read).toBeLessThan(1000 * 202 * 0.5);
  expect(await client.fetch({})).toMatchObject({ text: 'a:1' });
  // A list that waits is used before the resolver is asked, because its answer is newer.
  resolver.push(listed('y:1'));
  resolver.push(listed('z:1'));
  resolver.push();
  await until(() => channel.addresses.length === 1);
  expect(channel.addresses).toMatchObject([{ address: 'a:1', stale: false }]);
});

test('invalid lists that are pushed without end are combined, and the valid list after them is used', async () => {
  const resolver = new Pusher(['a:1']);
  const lines: string[] = [];
  const channel = bed.channel(resolver, {
    backoffMs: 600_000,
    backoffMaxMs: 600_000,
    log: (line) => void lines.push(line),
  });
  await channel.ready();
  const before = lines.length;
  let read = 0;
  const invalid = {
    get address(): string {
      ++read;
      return 'no address';
    },
  };
  for (let i = 0; i < 1000; ++i) resolver.push([invalid]);
  expect(read).toBe(1);
  resolver.push(['b:1']);
  await until(() => channel.addresses[0]!.address === 'b:1');
  expect(read).toBe(1);
  expect(channel.addresses).toMatchObject([{ address: 'b:1', stale: false }]);
  expect(lines.slice(before).filter((line) => line.includes('no address')).length).toBeLessThan(2);
});

test('a resolver may use the array of a long list again', async () => {
  const resolver = new Pusher(['a:1']);
  const channel = bed.channel(resolver, { backoffMs: 600_000, backoffMaxMs: 600_000 });
  await channel.ready();
  const list = ['a:1', ...Array.from({ length: 200 }, (_, i) => `x-${i}:1`)];
  resolver.push(list);
  list.push('z:1');
  resolver.push(list);
  list.length = 0;
  await until(() => channel.addresses.some(({ address, stale }) => address === 'z:1' || stale));
  expect(channel.addresses.at(-1)).toMatchObject({ address: 'z:1', stale: false });
});

test('the policy changes with each list of the resolver: no call fails, and no connection is lost', async () => {
  const configs = [
    { round_robin: {} },
    { least_request_experimental: {} },
    { weighted_round_robin: {} },
    { ring_hash_experimental: { requestHashHeader: 'user-id' } },
  ];
  const listed = (i: number): ServerAddress[] => {
    const loadBalancingConfig = [configs[i % configs.length]];
    const attributes = { serviceConfig: JSON.stringify({ loadBalancingConfig }) };
    return ['a:1', 'b:1', 'c:1'].map((address) => ({ address, attributes }));
  };
  const resolver = new Pusher(listed(0));
  const lines: string[] = [];
  const channel = bed.channel(resolver, { log: (line) => void lines.push(line) });
  const client = createClient(EchoDefinition, channel);
  await channel.ready();
  await until(() => channel.addresses.every(({ state }) => state === 'ready'));
  let over = false;
  const callers = Array.from({ length: 4 }, async () => {
    while (!over) await client.fetch({});
  });
  for (let i = 0; i < runs(500); ++i) {
    resolver.push(listed(i));
    await client.fetch({});
  }
  over = true;
  await Promise.all(callers);
  expect(bed.dialled).toHaveLength(3);
  expect(lines.filter((line) => line.includes('configuration'))).toEqual([]);
});
