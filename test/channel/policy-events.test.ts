/**
 * Tests every policy with every event that takes a connection away from calls, or repeats a call.
 */
import {
  type CallOptions,
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  RpcError,
  Status,
} from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Random } from '../states/random.ts';
import { Bed, caught, until } from './bed.ts';
import { addresses, metadata, policies, serversOf } from './policy-table.ts';

const longMs = 600_000;
const [a, b, c] = addresses;

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

describe.each(policies)('%s', (policy, row) => {
  const { options, all, withoutA, retried, hedged } = row;
  const open = (more: ChannelOptions = {}): Channel =>
    bed.channel(serversOf(row), { backoffMs: longMs, backoffMaxMs: longMs, ...options, ...more });
  async function ready(channel: Channel): Promise<Channel> {
    await channel.ready();
    await until(() => policy === 'pick-first' || channel.addresses.every(({ state }) => state === 'ready'));
    return channel;
  }
  const fetch = async (channel: Channel, given?: CallOptions): Promise<string> =>
    (
      await createClient(EchoDefinition, channel, { fetch: { idempotent: true } }).fetch(
        {},
        { metadata, ...given },
      )
    ).text[0]!;
  /** Returns which servers answer, without order and repetition. */
  async function answering(channel: Channel, calls = 20, given?: CallOptions): Promise<string> {
    const who = new Set<string>();
    for (let i = 0; i < calls; ++i) who.add(await fetch(channel, given));
    return [...who].sort().join('');
  }
  const hang = (channel: Channel): Promise<RpcError> =>
    caught(createClient(EchoDefinition, channel).behave({ text: 'hang' }, { metadata }));

  test('calls succeed while all servers are well', async () => {
    bed.start(...addresses);
    expect(await answering(await ready(open()))).toBe(all);
  });

  test('drain: calls in flight finish, later calls go elsewhere, and none fails', async () => {
    bed.start(...addresses);
    const channel = await ready(open());
    const finish: (() => void)[] = [];
    bed.unwell.set(a, () => new Promise((resolve) => finish.push(() => resolve({ text: a }))));
    const calls = Array.from({ length: 3 }, () =>
      createClient(EchoDefinition, channel).fetch({}, { metadata }),
    );
    await until(() => bed.at(a).log.started > 0);
    bed.unwell.clear();
    const stopped = bed.stop(a, longMs);
    await until(() => channel.addresses[0]!.state !== 'ready');
    expect(await answering(channel)).toBe(withoutA);
    for (const each of finish) each();
    await Promise.all(calls);
    await stopped;
  });

  test('loss: calls in flight fail, and later calls go elsewhere', async () => {
    bed.start(...addresses);
    const channel = await ready(open());
    const { log } = bed.at(a);
    const hanging: Promise<RpcError>[] = [];
    while (log.started === 0) {
      hanging.push(hang(channel));
      await until(
        () => addresses.reduce((sum, each) => sum + bed.at(each).log.started, 0) === hanging.length,
      );
    }
    await bed.stop(a);
    expect(await Promise.race(hanging)).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
    // Calls to the other addresses hang, so the least-request policy avoids those addresses.
    for (const who of await answering(channel)) expect(withoutA).toContain(who);
    for (const each of [b, c]) await bed.stop(each);
    await Promise.all(hanging);
  });

  test('ejection: after bad answers in a row, but never with pick-first', async () => {
    bed.start(...addresses);
    const channel = await ready(open({ outlierDetection: { badAnswersMax: 3 } }));
    bed.unwell.set(a, () => Promise.reject(new RpcError(Status.INTERNAL, 'unwell')));
    for (let bad = 0, i = 0; bad < 3 && i < 100; ++i) await fetch(channel).catch(() => ++bad);
    bed.unwell.clear();
    expect(channel.addresses[0]!.state).toBe(policy === 'pick-first' ? 'ready' : 'ejected');
    expect(await answering(channel)).toBe(policy === 'pick-first' ? 'a' : withoutA);
  });

  test('retry repeats a call that the server answers with UNAVAILABLE', async () => {
    bed.start(...addresses);
    const channel = await ready(open({ outlierDetection: { badAnswersMax: 0 } }));
    bed.unwell.set(a, () => Promise.reject(new RpcError(Status.UNAVAILABLE, 'unwell')));
    const retry = { attemptsMax: 3, backoffMs: 0 };
    if (retried === '') {
      const error = await caught(fetch(channel, { retry }));
      expect(error).toMatchObject({ code: Status.UNAVAILABLE });
      expect(bed.at(a).log.started).toBe(3);
    } else {
      expect(await answering(channel, 8, { retry })).toBe(retried);
      expect(bed.at(a).log.started).toBeGreaterThan(0);
    }
  });

  test('retry ends with another server when its own server is ejected', async () => {
    bed.start(...addresses);
    const channel = await ready(open({ outlierDetection: { badAnswersMax: 2 } }));
    bed.unwell.set(a, () => Promise.reject(new RpcError(Status.UNAVAILABLE, 'unwell')));
    const call = fetch(channel, { retry: { attemptsMax: 4, backoffMs: 0 } });
    if (policy === 'pick-first') expect(await caught(call)).toMatchObject({ code: Status.UNAVAILABLE });
    else expect(withoutA).toContain(await call);
  });

  test('hedging repeats a call that its server does not answer', async () => {
    bed.start(...addresses);
    const channel = await ready(open());
    bed.unwell.set(a, () => new Promise<never>(() => {}));
    const hedging = { attemptsMax: 2, delayMs: 0 };
    if (hedged === '') {
      const controller = new AbortController();
      const error = caught(fetch(channel, { hedging, signal: controller.signal }));
      await until(() => bed.at(a).log.started === 2);
      controller.abort();
      expect(await error).toMatchObject({ code: Status.CANCELLED });
    } else {
      expect(await answering(channel, 12, { hedging })).toBe(hedged);
      expect(bed.at(a).log.started).toBeGreaterThan(0);
    }
  });

  test('waitForReady: calls survive a time without a server', async () => {
    const channel = open({ backoffMs: 1, backoffMaxMs: 1 });
    const answer = fetch(channel, { waitForReady: true });
    await until(() => bed.dialled.length > 6);
    bed.start(c);
    expect(await answer).toBe('c');
  });

  test('without a server calls fail, with the error of the last attempt', async () => {
    const error = await caught(fetch(open()));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
  });

  test('more calls than call slots wait, and all are answered', async () => {
    bed.start(...addresses);
    const channel = await ready(open({ inflightMax: 2 }));
    const client = createClient(EchoDefinition, channel);
    const numbers = Array.from({ length: 300 }, (_, number) => number);
    const answers = await Promise.all(numbers.map((number) => client.echo({ number }, { metadata })));
    expect(answers.map(({ number }) => number)).toEqual(numbers);
    if (policy !== 'pick-first')
      for (const each of addresses) expect(bed.at(each).log.started).toBeGreaterThan(0);
  });
});

describe('options that do not fit', () => {
  test.each<[ChannelOptions, RegExp]>([
    [{ loadBalancing: 'consistent-hash' }, /needs the name of a metadata key/],
    [{ loadBalancing: 'consistent-hash', consistentHash: { metadataKey: 'a b' } }, /needs the name/],
    [{ consistentHash: { metadataKey: 'a' } }, /consistentHash has no effect without/],
    [
      { loadBalancing: 'consistent-hash', consistentHash: { metadataKey: 'a', maxLoad: 0.9 } },
      /consistentHash: maxLoad: 0.9 is not a number from 1 to 1000/,
    ],
  ])('%j', (options, text) => {
    expect(() => createChannel('a:1', options)).toThrow(text);
  });
});
