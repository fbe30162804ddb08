/** Tests every policy with every event that changes the list of servers, or the health of a server. */
import { type Channel, type ChannelOptions, createClient, type Resolver, type ServerAddress } from 'rdma-rpc';
import { addHealth, healthCheck } from 'rdma-rpc/health';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Random } from '../states/random.ts';
import { Bed, until } from './bed.ts';
import { addresses, metadata, policies, serversOf } from './policy-table.ts';

type List = readonly (string | ServerAddress)[];
const [a, , c] = addresses;
const longMs = 600_000;

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
  const random = new Random(7);
  vi.spyOn(Math, 'random').mockImplementation(() => random.below(2 ** 30) / 2 ** 30);
});
afterEach(async () => {
  await bed.close();
  vi.restoreAllMocks();
});

class Source implements Resolver {
  resolve: () => Promise<List>;
  push!: (servers?: List) => void;

  constructor(first: List) {
    this.resolve = () => Promise.resolve(first);
  }

  watch(onChange: (servers?: List) => void): () => void {
    this.push = onChange;
    return () => undefined;
  }
}

describe.each(policies)('%s', (policy, row) => {
  const { options, all, withoutA } = row;
  const list = serversOf(row);
  const without = (address: string): List =>
    list.filter((each) => (typeof each === 'string' ? each : each.address) !== address);
  const open = (source: Resolver, more: ChannelOptions = {}): Channel =>
    bed.channel(source, { backoffMs: 1, backoffMaxMs: 1, resolveMinMs: 0, ...options, ...more });
  const connected = (channel: Channel): boolean =>
    policy === 'pick-first' || channel.addresses.every(({ state }) => state === 'ready');
  async function ready(channel: Channel): Promise<Channel> {
    await channel.ready();
    await until(() => connected(channel));
    return channel;
  }
  const fetch = async (channel: Channel, waitForReady = false): Promise<string> =>
    (await createClient(EchoDefinition, channel).fetch({}, { metadata, waitForReady })).text[0]!;
  async function answers(channel: Channel, calls = 20): Promise<string> {
    let who = '';
    for (let i = 0; i < calls; ++i) who += await fetch(channel);
    return who;
  }
  const answering = async (channel: Channel, calls?: number): Promise<string> =>
    [...new Set(await answers(channel, calls))].sort().join('');

  test('a server is added, and gets its part of the calls', async () => {
    bed.start(...addresses);
    const source = new Source(without(c));
    const channel = await ready(open(source));
    await answers(channel);
    source.push(list);
    await until(() => connected(channel));
    expect(await answering(channel)).toBe(all);
  });

  test('a server is removed: no call goes there any more, and none fails', async () => {
    bed.start(...addresses);
    const source = new Source(list);
    const channel = await ready(open(source));
    expect(await answering(channel)).toBe(all);
    source.push(without(a));
    await until(() => channel.state === 'ready');
    expect(await answering(channel)).toBe(withoutA);
    await until(() => bed.at(a).server.sessionCount === 0);
  });

  test('the list becomes stale: its servers stay in use', async () => {
    bed.start(...addresses);
    const source = new Source(list);
    const channel = await ready(open(source));
    source.resolve = () => Promise.reject(new Error('the registry is down'));
    source.push();
    await until(() => channel.addresses.every(({ stale }) => stale));
    expect(await answering(channel)).toBe(all);
    source.push([]);
    expect(await answering(channel)).toBe(all);
  });

  test('weights change, and so do the shares of policies that use weights', async () => {
    bed.start(...addresses);
    const source = new Source(list);
    const channel = await ready(open(source));
    source.push(
      list.map((each) => {
        const server = typeof each === 'string' ? { address: each } : each;
        return { ...server, weight: server.address === a ? 8 : 1 };
      }),
    );
    const share = [...(await answers(channel, 100))].filter((who) => who === 'a').length / 100;
    if (all === 'abc') {
      expect(share).toBeGreaterThan(0.7);
      expect(share).toBeLessThan(0.9);
    } else expect(share).toBe(1);
    expect(bed.dialled.length).toBeLessThanOrEqual(3);
  });

  test('a server says that it does not serve: only pick-first goes there', async () => {
    bed.start(...addresses);
    const health = addHealth(bed.at(a).server);
    const channel = await ready(open(new Source(list), { healthCheck: healthCheck() }));
    expect(await answering(channel)).toBe(all);
    health.setStatus('', 'NOT_SERVING');
    if (policy !== 'pick-first') await until(() => channel.addresses[0]!.state === 'unhealthy');
    expect(await answering(channel)).toBe(policy === 'pick-first' ? 'a' : withoutA);
    health.setStatus('', 'SERVING');
    await until(() => connected(channel));
    expect(await answering(channel)).toBe(all);
  });

  test('all servers leave and come back, and calls that wait are answered', async () => {
    bed.start(...addresses);
    const channel = await ready(open(new Source(list)));
    for (const each of addresses) await bed.stop(each);
    await until(() => channel.state !== 'ready');
    const waiting = Array.from({ length: 5 }, () => fetch(channel, true));
    bed.start(...addresses);
    for (const who of await Promise.all(waiting)) expect('abc').toContain(who);
    while (!connected(channel)) await fetch(channel, true);
    if (policy !== 'pick-first') expect(await answering(channel)).toBe(all);
  });

  test('100 rolling restarts of three servers under load: no call fails', async () => {
    bed.start(...addresses);
    const channel = await ready(open(new Source(list)));
    let over = false;
    let answered = 0;
    const failed: unknown[] = [];
    const load = async (): Promise<void> => {
      while (!over)
        await fetch(channel).then(
          () => ++answered,
          (error: unknown) => failed.push(error),
        );
    };
    const running = Array.from({ length: 8 }, load);
    for (let i = 0; i < 100; ++i) {
      const address = addresses[i % 3]!;
      await bed.stop(address, longMs);
      bed.start(address);
      await until(() => connected(channel));
    }
    over = true;
    await Promise.all(running);
    expect(failed).toEqual([]);
    expect(answered).toBeGreaterThan(200);
  });
});
