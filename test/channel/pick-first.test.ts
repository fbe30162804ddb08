/**
 * Tests channels with several addresses that use one address at a time, which is the first that can be
 * reached.
 */
import { type Channel, createChannel, createClient, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, caught, until } from './bed.ts';

const longMs = 600_000;
const [a, b, c] = ['a:1', 'b:1', 'c:1'] as const;
const policy = 'pick-first';

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
});
afterEach(() => bed.close());

async function answered(channel: Channel, calls: number): Promise<string> {
  const client = createClient(EchoDefinition, channel);
  let who = '';
  for (let i = 0; i < calls; ++i) who += (await client.fetch({}, { waitForReady: true })).text[0];
  return who;
}

describe('pick-first', () => {
  test('connects to the first address only', async () => {
    bed.start(a, b, c);
    const channel = bed.channel([a, b, c], { loadBalancing: policy });
    expect(await answered(channel, 5)).toBe('aaaaa');
    expect(bed.dialled).toEqual([a]);
    expect(channel.addresses.map(({ state }) => state)).toEqual(['ready', 'idle', 'idle']);
  });

  test('tries the next address when one cannot be reached, and keeps the one that works', async () => {
    bed.start(b, c);
    const channel = bed.channel([a, b, c], { loadBalancing: policy, backoffMs: 1, backoffMaxMs: 1 });
    await channel.ready();
    bed.start(a);
    expect(await answered(channel, 5)).toBe('bbbbb');
    expect(bed.dialled).toEqual([a, b]);
  });

  test('begins with the first address again when the connection is lost', async () => {
    bed.start(b, c);
    const channel = bed.channel([a, b, c], { loadBalancing: policy, backoffMs: 1, backoffMaxMs: 1 });
    await channel.ready();
    await until(() => channel.addresses[0]?.state === 'idle');
    bed.start(a);
    await bed.stop(b);
    await until(() => channel.state !== 'ready');
    expect(await answered(channel, 3)).toBe('aaa');
  });

  test('calls wait while the list is tried, and fail when no address on it can be reached', async () => {
    const channel = bed.channel([a, b, c], {
      loadBalancing: policy,
      backoffMs: longMs,
      backoffMaxMs: longMs,
    });
    const error = await caught(createClient(EchoDefinition, channel).echo({}));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(bed.dialled).toEqual([a, b, c]);
    expect(channel.state).toBe('failing');
  });

  test('ready() tries the whole list, in spite of pauses', async () => {
    const channel = bed.channel([a, b, c], {
      loadBalancing: policy,
      backoffMs: longMs,
      backoffMaxMs: longMs,
    });
    await caught(channel.ready());
    bed.start(c);
    await channel.ready();
    expect(bed.dialled).toEqual([a, b, c, a, b, c]);
    expect(await answered(channel, 2)).toBe('cc');
  });

  test('a call that waits for ready survives rounds without an answer', async () => {
    const channel = bed.channel([a, b], { loadBalancing: policy, backoffMs: 1, backoffMaxMs: 1 });
    const answer = answered(channel, 1);
    await until(() => bed.dialled.length > 6);
    bed.start(b);
    expect(await answer).toBe('b');
    expect(channel.addresses.filter(({ state }) => state === 'ready')).toHaveLength(1);
  });

  test('leaves an address that is no longer on the list', async () => {
    bed.start(a, b);
    let change = (): void => undefined;
    const list = { now: [a, b] as string[] };
    const resolver = {
      resolve: () => Promise.resolve(list.now),
      watch: (onChange: () => void) => {
        change = onChange;
        return () => undefined;
      },
    };
    const channel = bed.channel(resolver, { loadBalancing: policy });
    expect(await answered(channel, 2)).toBe('aa');
    list.now = [b];
    change();
    await until(() => channel.addresses.length === 1);
    expect(await answered(channel, 2)).toBe('bb');
  });

  test('error responses exclude no address', async () => {
    bed.start(a, b);
    const channel = bed.channel([a, b], { loadBalancing: policy, outlierDetection: { badAnswersMax: 1 } });
    const client = createClient(EchoDefinition, channel);
    for (let i = 0; i < 5; ++i) await caught(client.behave({ text: 'throw' }));
    expect(await answered(channel, 2)).toBe('aa');
  });
});

test('an unknown policy is refused', () => {
  expect(() => createChannel('a:1', { loadBalancing: 'random' as 'pick-first' })).toThrow(
    /loadBalancing: random is not allowed; use one of round-robin, pick-first, least-request, consistent-hash/,
  );
});
