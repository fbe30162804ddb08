/**
 * Tests resolvers that push lists, and sources that fail. The last answer stays in use and is marked as
 * stale.
 */
import { type Channel, createClient, type Resolver, type ServerAddress, Status } from 'rdma-rpc';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, caught, turn, until } from './bed.ts';

const [a, b, c] = ['a:1', 'b:1', 'c:1'] as const;
type List = readonly (string | ServerAddress)[];

let bed: Bed;
let nowMs: number;
beforeEach(() => {
  bed = new Bed();
  nowMs = 1000;
  replaceClock(() => nowMs);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(async () => {
  vi.useRealTimers();
  replaceClock(undefined);
  await bed.close();
});

/** Lets virtual time pass. */
async function pass(ms: number): Promise<void> {
  nowMs += ms;
  await vi.advanceTimersByTimeAsync(ms);
}

/** A resolver whose answers and pushed lists the test sets. */
class Source implements Resolver {
  answer: () => Promise<List>;
  asked = 0;
  push!: (servers?: List) => void;

  constructor(...first: List) {
    this.answer = () => Promise.resolve(first);
  }

  resolve(): Promise<List> {
    ++this.asked;
    return this.answer();
  }

  watch(onChange: (servers?: List) => void): () => void {
    this.push = onChange;
    return () => undefined;
  }
}

const down = (): Promise<never> => Promise.reject(new Error('the registry is down'));
const known = (channel: Channel): string =>
  channel.addresses.map(({ address, stale }) => `${address[0]}${stale ? '?' : ''}`).join(' ');
async function connected(source: Resolver): Promise<Channel> {
  const channel = bed.channel(source, {
    loadBalancing: 'round-robin',
    backoffMs: 100,
    backoffMaxMs: 1000,
    resolveMinMs: 0,
  });
  await channel.ready();
  await until(() => channel.addresses.every(({ state }) => state === 'ready'));
  return channel;
}
async function answered(channel: Channel): Promise<string> {
  const client = createClient(EchoDefinition, channel);
  const who = new Set<string>();
  for (let i = 0; i < 12; ++i) who.add((await client.fetch({})).text[0]!);
  return [...who].sort().join('');
}

test('a pushed list is used at once, and the resolver is not asked', async () => {
  bed.start(a, b, c);
  const source = new Source(a);
  const channel = await connected(source);
  source.push([b, { address: c, weight: 2, zone: 'west', attributes: { rack: '7' } }]);
  await until(() => channel.addresses.every(({ state }) => state === 'ready'));
  expect(await answered(channel)).toBe('bc');
  expect(channel.addresses).toEqual([
    {
      address: b,
      weight: 1,
      zone: undefined,
      attributes: undefined,
      stale: false,
      state: 'ready',
      error: undefined,
    },
    {
      address: c,
      weight: 2,
      zone: 'west',
      attributes: { rack: '7' },
      stale: false,
      state: 'ready',
      error: undefined,
    },
  ]);
  expect(source.asked).toBe(1);
});

test.each<[string, (source: Source) => void]>([
  [
    'an answer that fails',
    (source) => {
      source.answer = down;
      source.push();
    },
  ],
  [
    'an empty answer',
    (source) => {
      source.answer = () => Promise.resolve([]);
      source.push();
    },
  ],
  ['an empty list that is pushed', (source) => source.push([])],
  ['a pushed list with a wrong address', (source) => source.push([a, 'nonsense'])],
  [
    'a pushed list that throws',
    (source) =>
      source.push({
        [Symbol.iterator]: () => {
          throw new Error('broken');
        },
      } as unknown as List),
  ],
])('%s leaves the last list, marked as stale, until the source is back', async (_, fail) => {
  bed.start(a, b, c);
  const source = new Source(a, b);
  const channel = await connected(source);
  const back = source.answer;
  source.answer = down;
  fail(source);
  await until(() => known(channel) === 'a? b?');
  expect(channel.state).toBe('ready');
  expect(await answered(channel)).toBe('ab');
  for (let i = 0; i < 60; ++i) await pass(1000);
  expect(known(channel)).toBe('a? b?');
  expect(await answered(channel)).toBe('ab');
  source.answer = back;
  await pass(1300);
  await until(() => known(channel) === 'a b');
});

test('while a failed source is asked again, pauses grow to backoffMaxMs', async () => {
  bed.start(a);
  const source = new Source(a);
  await connected(source);
  source.answer = down;
  source.push();
  for (let i = 0; i < 100; ++i) await pass(100);
  const { asked } = source;
  for (let i = 0; i < 100; ++i) await pass(100);
  expect(source.asked - asked).toBeGreaterThanOrEqual(7);
  expect(source.asked - asked).toBeLessThanOrEqual(13);
});

test('servers that restart while the source is unavailable are found again', async () => {
  bed.start(a, b);
  const source = new Source(a, b);
  const channel = await connected(source);
  source.answer = down;
  await bed.stop(a);
  await bed.stop(b);
  await until(() => channel.state !== 'ready');
  const call = createClient(EchoDefinition, channel).fetch({}, { waitForReady: true });
  bed.start(a, b);
  for (let i = 0; i < 30; ++i) {
    await pass(100);
    await turn();
  }
  expect('ab').toContain((await call).text[0]);
});

test('a pushed list replaces an answer that was still awaited', async () => {
  bed.start(a, b);
  const source = new Source(a);
  let late!: (list: List) => void;
  source.answer = () => new Promise((resolve) => (late = resolve));
  const channel = bed.channel(source);
  const ready = channel.ready();
  await until(() => source.asked === 1);
  source.push([b]);
  await ready;
  late([a]);
  await turn();
  expect(known(channel)).toBe('b');
});

test('a resolver may push while it begins to watch', async () => {
  bed.start(a);
  const watch = (onChange: (servers?: List) => void): (() => void) => {
    onChange([a]);
    return () => undefined;
  };
  const channel = bed.channel({ resolve: down, watch });
  expect(await answered(channel)).toBe('a');
  const asking = bed.channel({
    resolve: () => Promise.resolve([a]),
    watch: (onChange) => {
      onChange();
      return () => undefined;
    },
  });
  await until(() => asking.addresses.length === 1);
});

test('without any list calls fail with the reason of the source', async () => {
  const channel = bed.channel(new Source(), { backoffMs: 600_000 });
  const error = await caught(createClient(EchoDefinition, channel).echo({}));
  expect(error).toMatchObject({ code: Status.UNAVAILABLE, message: /the resolver gave no address/ });
});

test('pushes after the channel was closed have no effect', async () => {
  bed.start(a);
  const source = new Source(a);
  const channel = await connected(source);
  await channel.close();
  source.push([b]);
  source.push();
  await turn();
  expect(bed.dialled).toEqual([a]);
});
