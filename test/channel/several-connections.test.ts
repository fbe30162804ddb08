/** Tests several connections to one address, subsets and zones of a channel, and health checks. */
import { type Channel, createClient, Status } from 'rdma-rpc';
import { addHealth, type Health, healthCheck } from 'rdma-rpc/health';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, caught, until } from './bed.ts';

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
});
afterEach(() => bed.close());

/** Returns the number of sessions at all servers. */
const sessions = (): number =>
  [...bed.running.values()].reduce((sum, { server }) => sum + server.sessionCount, 0);
const dialled = (address: string): number => bed.dialled.filter((each) => each === address).length;
async function answered(channel: Channel, calls = 60): Promise<string> {
  const client = createClient(EchoDefinition, channel);
  const who = new Set<string>();
  for (let i = 0; i < calls; ++i) who.add((await client.fetch({})).text[0]!);
  return [...who].sort().join('');
}

describe('connectionsPerAddress', () => {
  test('calls are spread over the connections of one address', async () => {
    bed.start('a:1');
    const channel = bed.channel(['a:1'], { connectionsPerAddress: 4, inflightMax: 2 });
    await channel.ready();
    await until(() => bed.at('a:1').server.sessionCount === 4);
    expect(channel.addresses).toMatchObject([{ address: 'a:1', state: 'ready' }]);
    const client = createClient(EchoDefinition, channel);
    const controller = new AbortController();
    const { signal } = controller;
    const calls = Array.from({ length: 8 }, () => caught(client.behave({ text: 'hang' }, { signal })));
    await until(() => bed.at('a:1').log.started === 8);
    controller.abort();
    await Promise.all(calls);
  });

  test('windows of all connections are used before calls wait, and a lost connection comes back', async () => {
    bed.start('a:1', 'b:1');
    const channel = bed.channel(['a:1', 'b:1'], { connectionsPerAddress: 2, inflightMax: 1, backoffMs: 1 });
    await channel.ready();
    await until(() => sessions() === 4);
    const client = createClient(EchoDefinition, channel);
    const numbers = Array.from({ length: 100 }, (_, number) => number);
    const answers = await Promise.all(numbers.map((number) => client.echo({ number })));
    expect(answers.map(({ number }) => number)).toEqual(numbers);
    bed.far('a:1').destroy();
    await until(() => sessions() === 3);
    expect(await answered(channel)).toBe('ab');
    await until(() => sessions() === 4);
  });

  test('when an address leaves, all of its connections close', async () => {
    bed.start('a:1', 'b:1');
    let push: (servers: string[]) => void = () => undefined;
    const channel = bed.channel(
      {
        resolve: () => Promise.resolve(['a:1', 'b:1']),
        watch: (onChange) => {
          push = onChange;
          return () => undefined;
        },
      },
      { connectionsPerAddress: 3 },
    );
    await channel.ready();
    await until(() => sessions() === 6);
    push(['b:1']);
    await until(() => bed.at('a:1').server.sessionCount === 0);
    expect(await answered(channel)).toBe('b');
    expect(dialled('b:1')).toBe(3);
  });

  test('pick-first has one connection', () => {
    expect(() => bed.channel(['a:1'], { connectionsPerAddress: 2, loadBalancing: 'pick-first' })).toThrow(
      /leave out connectionsPerAddress/,
    );
  });
});

describe('zone and subset', () => {
  const addresses = ['a', 'b', 'c', 'd'].map((name, i) => ({
    address: `${name}:1`,
    zone: i < 2 ? 'x' : 'y',
  }));

  test('a channel stays in its zone until too few servers of the zone are left', async () => {
    bed.start(...addresses.map(({ address }) => address));
    const channel = bed.channel(addresses, { zone: 'x', backoffMs: 100_000, backoffMaxMs: 100_000 });
    await channel.ready();
    await until(() => channel.addresses.every(({ state }) => state === 'ready'));
    expect(await answered(channel, 20)).toBe('ab');
    await bed.stop('a:1');
    await until(() => channel.addresses[0]!.state !== 'ready');
    // The factor is 1.4 times one half, so 30 % of the calls leave the zone.
    expect(await answered(channel, 200)).toBe('bcd');
    await bed.stop('b:1');
    await until(() => channel.addresses[1]!.state !== 'ready');
    expect(await answered(channel, 20)).toBe('cd');
  });

  test('a channel connects only to its subset, which is the same for the same id', async () => {
    bed.start(...addresses.map(({ address }) => address));
    const open = async (clientId: string): Promise<string> => {
      const channel = bed.channel(addresses, { subset: { size: 2, clientId }, connectTimeoutMs: 60_000 });
      await channel.ready();
      await until(() => channel.addresses.every(({ state }) => state === 'ready'));
      expect(channel.addresses).toHaveLength(2);
      return channel.addresses.map(({ address }) => address).join();
    };
    const ids = Array.from({ length: 12 }, (_, i) => `pod-${i}`);
    const subsets = await Promise.all(ids.map(open));
    expect(new Set(subsets).size).toBeGreaterThan(2);
    expect(await open(ids[0]!)).toBe(subsets[0]);
  });

  test('a resolver may list more servers than a channel has, if there is a subset', async () => {
    const many = Array.from({ length: 2000 }, (_, i) => `10.0.${i >> 8}.${i & 255}:1`);
    bed.start(...many);
    const channel = bed.channel({ resolve: () => Promise.resolve(many) }, { subset: { size: 3 } });
    await channel.ready();
    expect(channel.addresses).toHaveLength(3);
    const whole = bed.channel({ resolve: () => Promise.resolve(many) });
    await expect(whole.ready()).rejects.toThrow(
      /2000 addresses, at most 256 are allowed; give the channel the option subset/,
    );
  });
});

describe('health checks', () => {
  async function open(...addresses: string[]): Promise<{ channel: Channel; health: Map<string, Health> }> {
    bed.start(...addresses);
    const health = new Map(addresses.map((each) => [each, addHealth(bed.at(each).server)]));
    const channel = bed.channel(addresses, { healthCheck: healthCheck(), backoffMs: 1, backoffMaxMs: 1 });
    await channel.ready();
    await until(() => channel.addresses.every(({ state }) => state === 'ready'));
    return { channel, health };
  }

  test('a server that reports NOT_SERVING gets no calls until it reports SERVING', async () => {
    const { channel, health } = await open('a:1', 'b:1');
    health.get('a:1')!.setStatus('', 'NOT_SERVING');
    await until(() => channel.addresses[0]!.state === 'unhealthy');
    expect(await answered(channel)).toBe('b');
    health.get('a:1')!.setStatus('', 'SERVING');
    await until(() => channel.addresses[0]!.state === 'ready');
    expect(await answered(channel)).toBe('ab');
    expect(bed.dialled).toHaveLength(2);
  });

  test('when no server serves, calls fail with that reason, and calls with waitForReady wait', async () => {
    const { channel, health } = await open('a:1');
    health.get('a:1')!.setStatus('', 'NOT_SERVING');
    await until(() => channel.state === 'failing');
    const client = createClient(EchoDefinition, channel);
    const error = await caught(client.fetch({}));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(error.message).toContain('NOT_SERVING');
    const waiting = client.fetch({}, { waitForReady: true });
    health.get('a:1')!.setStatus('', 'SERVING');
    expect((await waiting).text).toBe('a:1');
  });

  test('a server without a health service counts as serving', async () => {
    bed.start('a:1');
    const channel = bed.channel(['a:1'], { healthCheck: healthCheck('test.echo.Echo') });
    expect(await answered(channel)).toBe('a');
  });

  test('a server that drains is left, and the watch of its health does not delay it', async () => {
    const { channel } = await open('a:1', 'b:1');
    await bed.stop('a:1', 100_000);
    expect(await answered(channel)).toBe('b');
  });

  test('after a connection is lost, the health of the next one is requested', async () => {
    const { channel } = await open('a:1', 'b:1');
    bed.far('a:1').destroy();
    await until(() => channel.addresses[0]!.state !== 'ready');
    // Calls make the channel connect again.
    while (channel.addresses[0]!.state !== 'ready') await answered(channel, 1);
    expect(await answered(channel)).toBe('ab');
  });

  test('a value that is not a health check is refused', () => {
    expect(() => bed.channel(['a:1'], { healthCheck: {} as never })).toThrow(/give what healthCheck\(\)/);
  });
});
