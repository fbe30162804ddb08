/**
 * Tests channels to several addresses: their order, lost connections, wrong answers, and names that are
 * resolved again.
 */
import {
  type Channel,
  type Client,
  createChannel,
  createClient,
  type OutlierDetection,
  type Resolver,
  RpcError,
  Status,
} from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { targetOf } from '../../runtime/client/connections/target.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, caught, until } from './bed.ts';

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
});
afterEach(() => bed.close());

const longMs = 600_000;
const a = 'a:1';
const b = 'b:1';
const c = 'c:1';

type TestClient = Client<typeof EchoDefinition>;
/** Options of tests that depend on the order in which addresses take turns. */
const inTurn = { loadBalancing: 'round-robin' } as const;
const stateOf = (channel: Channel, address: string) =>
  channel.addresses.find((each) => each.address === address)?.state;
/** Returns which servers answer this number of calls, in order. */
async function answered(client: TestClient, calls: number): Promise<string> {
  let who = '';
  for (let i = 0; i < calls; ++i) who += (await client.fetch({})).text[0];
  return who;
}
async function allReady(channel: Channel): Promise<TestClient> {
  await channel.ready();
  await until(() => channel.addresses.every(({ state }) => state === 'ready'));
  return createClient(EchoDefinition, channel);
}

describe('several addresses', () => {
  test('take turns', async () => {
    bed.start(a, b, c);
    const client = await allReady(bed.channel([a, b, c], inTurn));
    const who = await answered(client, 9);
    expect([...who].sort().join('')).toBe('aaabbbccc');
    expect(who.slice(0, 3)).toBe(who.slice(3, 6));
  });

  test('an unreachable address is skipped, and tried again after its pause', async () => {
    bed.start(a);
    const channel = bed.channel([a, b], { ...inTurn, backoffMs: 1, backoffMaxMs: 1 });
    await channel.ready();
    const client = createClient(EchoDefinition, channel);
    await until(() => stateOf(channel, b) !== 'connecting');
    expect(await answered(client, 4)).toBe('aaaa');
    bed.start(b);
    while (stateOf(channel, b) !== 'ready') await client.echo({});
    expect([...(await answered(client, 4))].sort().join('')).toBe('aabb');
  });

  test('when an address is lost, the others get its calls', async () => {
    bed.start(a, b);
    const channel = bed.channel([a, b], { backoffMs: longMs });
    const client = await allReady(channel);
    const hanging = [0, 1].map(() => caught(client.behave({ text: 'hang' })));
    await until(() => bed.at(a).log.started + bed.at(b).log.started === 2);
    await bed.stop(b);
    expect(await Promise.race(hanging)).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    expect(await answered(client, 4)).toBe('aaaa');
    expect(channel.state).toBe('ready');
  });

  test('when no address can be reached, calls fail with the last error', async () => {
    const channel = bed.channel([a, b], { backoffMs: longMs });
    const error = await caught(createClient(EchoDefinition, channel).echo({}));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(channel.state).toBe('failing');
    expect(bed.dialled.sort()).toEqual([a, b]);
  });

  test('an address with inflightMax calls is skipped', async () => {
    bed.start(a, b);
    const client = await allReady(bed.channel([a, b], { inflightMax: 2 }));
    const controller = new AbortController();
    const { signal } = controller;
    const hanging = [0, 1, 2].map(() => caught(client.behave({ text: 'hang' }, { signal })));
    const who = await answered(client, 4);
    expect(new Set(who).size).toBe(1);
    controller.abort();
    await Promise.all(hanging);
  });

  test('more calls than all windows wait, and all are answered', async () => {
    bed.start(a, b);
    const client = await allReady(bed.channel([a, b], { inflightMax: 2 }));
    const numbers = Array.from({ length: 500 }, (_, number) => number);
    const answers = await Promise.all(numbers.map((number) => client.echo({ number })));
    expect(answers.map(({ number }) => number)).toEqual(numbers);
    expect(bed.at(a).log.started).toBeGreaterThan(0);
    expect(bed.at(b).log.started).toBeGreaterThan(0);
  });
});

describe('bad answers in a row', () => {
  async function ejected(options: OutlierDetection) {
    bed.start(a, b);
    const channel = bed.channel([a, b], {
      ...inTurn,
      outlierDetection: { badAnswersMax: 3, ejectionMs: longMs / 2, ...options },
    });
    const client = await allReady(channel);
    return { channel, client };
  }

  /**
   * Makes calls until this number of calls to `a` has failed. `throw` makes every server answer INTERNAL, so
   * the test makes only the calls to `a` throw.
   */
  async function failCalls(client: TestClient, times: number): Promise<void> {
    let struck = 0;
    while (struck < times) {
      const before = bed.at(a).log.started;
      await client.echo({});
      // Address b comes after a in the list.
      if (bed.at(a).log.started === before) {
        await caught(client.behave({ text: 'throw' }));
        ++struck;
      }
    }
  }

  test('leave an address out', async () => {
    const { channel, client } = await ejected({});
    await failCalls(client, 2);
    expect(stateOf(channel, a)).toBe('ready');
    await failCalls(client, 1);
    expect(stateOf(channel, a)).toBe('ejected');
    expect(await answered(client, 3)).toBe('bbb');
  });

  test('leave an address out only for a while', async () => {
    const { channel, client } = await ejected({ ejectionMs: 1 });
    await failCalls(client, 3);
    await until(() => stateOf(channel, a) === 'ready');
    expect([...(await answered(client, 4))].sort().join('')).toBe('aabb');
  });

  test('leave no address out with badAnswersMax 0, and never the last address', async () => {
    const { channel, client } = await ejected({ badAnswersMax: 0 });
    await failCalls(client, 6);
    expect(stateOf(channel, a)).toBe('ready');
    const strict = await allReady(
      bed.channel([a, b], { outlierDetection: { badAnswersMax: 1, ejectionMs: longMs / 2 } }),
    );
    for (let i = 0; i < 6; ++i) await caught(strict.behave({ text: 'throw' }));
    expect((await strict.echo({ number: 1 })).number).toBe(1);
  });

  test('do not exclude an address when all others are lost', async () => {
    const { channel, client } = await ejected({});
    await failCalls(client, 3);
    await bed.stop(b);
    await until(() => stateOf(channel, b) !== 'ready');
    expect(channel.state).toBe('ready');
    expect(await answered(client, 2)).toBe('aa');
  });
});

describe('a resolver', () => {
  const list = (...addresses: string[]): Resolver & { addresses: string[]; asked: number } => ({
    addresses,
    asked: 0,
    resolve(): Promise<string[]> {
      ++this.asked;
      return Promise.resolve(this.addresses);
    },
  });

  test('is asked when the channel connects and after a loss, so addresses come and go', async () => {
    bed.start(a, b);
    const resolver = list(a, b);
    const channel = bed.channel(resolver, { ...inTurn, resolveMinMs: 0 });
    expect(channel.state).toBe('idle');
    const client = await allReady(channel);
    expect(resolver.asked).toBe(1);
    resolver.addresses = [a, c];
    bed.start(c);
    await bed.stop(b);
    await until(() => stateOf(channel, c) === 'ready');
    expect(channel.addresses.map(({ address }) => address)).toEqual([a, c]);
    expect([...(await answered(client, 4))].sort().join('')).toBe('aacc');
  });

  test('that watches changes the list at once, and calls in flight at an old address finish', async () => {
    bed.start(a, b);
    let changed = (): void => undefined;
    let watching = true;
    const resolver: Resolver & { addresses: string[] } = {
      ...list(a),
      watch: (onChange) => {
        changed = onChange;
        return () => {
          watching = false;
        };
      },
    };
    const channel = bed.channel(resolver);
    const client = await allReady(channel);
    const controller = new AbortController();
    const slow = caught(client.behave({ text: 'hang' }, { signal: controller.signal }));
    await until(() => bed.at(a).log.started === 1);
    resolver.addresses = [b];
    changed();
    await until(() => stateOf(channel, b) === 'ready');
    expect(await answered(client, 2)).toBe('bb');
    expect(bed.at(a).server.sessionCount).toBe(1);
    controller.abort();
    expect(await slow).toMatchObject({ code: Status.CANCELLED });
    await until(() => bed.at(a).server.sessionCount === 0);
    await channel.close();
    expect(watching).toBe(false);
  });

  test('is not asked more often than resolveMinMs', async () => {
    const resolver = list(a);
    const channel = bed.channel(resolver, { resolveMinMs: longMs, backoffMs: 1, backoffMaxMs: 1 });
    const ready = caught(channel.ready({ timeoutMs: longMs }));
    await until(() => bed.dialled.length > 3);
    await channel.close();
    await ready;
    expect(resolver.asked).toBe(1);
  });

  test.each<[string, () => Promise<string[]>, RegExp]>([
    ['that fails', () => Promise.reject(new Error('no such host')), /cannot resolve bed: no such host/],
    [
      'that throws',
      () => {
        throw new Error('broken');
      },
      /cannot resolve bed: broken/,
    ],
    ['that has no address', () => Promise.resolve([]), /gave no address/],
    ['that has a bad address', () => Promise.resolve(['x']), /address "x": not understood/],
    [
      'that has too many',
      () => Promise.resolve(Array.from({ length: 257 }, (_, i) => `h:${i}`)),
      /257 addresses/,
    ],
    ['that never answers', () => new Promise(() => undefined), /no addresses within 20 ms/],
  ])('%s is an attempt that failed', async (_, resolve, text) => {
    const channel = bed.channel({ resolve }, { connectTimeoutMs: 20, backoffMs: longMs });
    const error = await caught(createClient(EchoDefinition, channel).echo({}));
    expect(error).toBeInstanceOf(RpcError);
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no', message: text });
    expect(channel.state).toBe('failing');
  });

  test('that fails later leaves the known addresses in use', async () => {
    bed.start(a);
    const resolver = list(a);
    const channel = bed.channel(resolver, { resolveMinMs: 0, backoffMs: 1 });
    const client = await allReady(channel);
    resolver.resolve = () => Promise.reject(new Error('down'));
    await bed.stop(a);
    await until(() => channel.state !== 'ready');
    bed.start(a);
    expect((await client.echo({ number: 4 }, { waitForReady: true })).number).toBe(4);
  });
});

describe('addresses that createChannel accepts', () => {
  test.each<[string | readonly string[], readonly string[] | undefined]>([
    ['host:1', ['host:1']],
    ['a:1, b:2', ['a:1', 'b:2']],
    [
      ['a:1', 'a:1', 'unix:/x'],
      ['a:1', 'unix:/x'],
    ],
    ['dns:///127.0.0.1:5', ['127.0.0.1:5']],
    ['dns:[::1]:5', ['[::1]:5']],
    ['dns:///name:5', undefined],
    ['dns:name:5', undefined],
    ['dns://10.0.0.2/name:5', undefined],
    ['dns://[::1]:53/name:5', undefined],
    ['srv:///_rpc._tcp.example.com', undefined],
    ['srv://127.0.0.1:5353/_rpc._tcp.example.com', undefined],
  ])('%j', (given, addresses) => {
    const target = targetOf(given);
    expect(target.servers?.map(({ address }) => address)).toEqual(addresses);
    expect(target.resolver === undefined).toBe(addresses !== undefined);
  });

  test.each<[unknown, RegExp]>([
    ['', /address "": not understood/],
    ['a:1,', /address "": not understood/],
    ['dns:///name', /not understood/],
    ['dns:unix:/x', /names no host/],
    ['dns://ns.test/name:5', /the DNS server is not an IP address; use dns:\/\/10.0.0.2\/host:port/],
    ['srv:///example.com', /names no service; use srv:\/\/\/_service._tcp/],
    ['srv:///_rpc._tcp.example.com:5000', /names no service/],
    ['srv://10.0.0.2/', /names no service/],
    ['http/name:5', /not understood/],
    [[], /an empty list/],
    [[5], /not a string/],
    [undefined, /not understood/],
    [{}, /not understood/],
    [{ resolve: 5 }, /resolve is not a function/],
    [[{ address: 'a:1', weight: 0 }], /a:1: weight 0 is not a number from 0.001 to 1000000/],
    [[{ address: 'a:1', weight: '2' }], /a:1: weight 2 is not a number/],
    [[{ address: 'a:1', weight: NaN }], /a:1: weight NaN is not a number/],
    [[{ weight: 2 }], /not a string/],
    [[null], /not a string/],
    [[{ address: 'a:1', zone: 5 }], /a:1: the zone must be a string, but is 5/],
    [[{ address: 'a:1', attributes: [] }], /a:1: attributes are an object/],
    [[{ address: 'a:1', attributes: { rack: 5 } }], /a:1: the attribute rack must be a string, but is 5/],
    [Array.from({ length: 257 }, (_, i) => `h:${i}`), /257 addresses, at most 256/],
  ])('%j is refused', (given, text) => {
    expect(() => createChannel(given as string)).toThrow(text);
  });

  test('a name stands for all of its addresses', async () => {
    const { resolver } = targetOf('dns:///localhost:5');
    const found = await resolver?.resolve(new AbortController().signal);
    expect(found).toContainEqual({ address: expect.stringMatching(/^(127\.0\.0\.1|\[::1\]):5$/) });
  });
});
