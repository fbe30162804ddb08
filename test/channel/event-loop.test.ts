/**
 * Tests calls that fail before they have left the process. The event loop keeps running, with any number of
 * calls and after any failure.
 */
import { type Channel, type ChannelOptions, createClient, type RpcError, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { Bed, turn, until } from './bed.ts';

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
});
afterEach(() => bed.close());

/** A loop of microtasks alone makes fewer iterations than this number, and any other loop makes more. */
const tries = 2000;
const longMs = 600_000;

/**
 * Returns the number of event-loop iterations while `fail` fails `tries` times, each time as soon as the last
 * one has failed.
 */
async function turnsDuring(fail: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let counting = true;
  const count = async (): Promise<void> => {
    while (counting) {
      await turn();
      ++turns;
    }
  };
  const counted = count();
  for (let i = 0; i < tries; ++i) {
    try {
      await fail();
    } catch {
      continue;
    }
    throw new Error('it did not fail');
  }
  const seen = turns;
  counting = false;
  await counted;
  return seen;
}

async function failing(options: ChannelOptions = {}): Promise<Channel> {
  const channel = bed.channel(['a'], { backoffMs: longMs, backoffMaxMs: longMs, ...options });
  await channel.ready().catch(() => undefined);
  await until(() => channel.state === 'failing');
  return channel;
}

const ways: [string, () => Promise<() => Promise<unknown>>][] = [
  [
    'a channel that is failing',
    async () => {
      const client = createClient(EchoDefinition, await failing());
      return () => client.echo({});
    },
  ],
  [
    'a stream on a channel that is failing',
    async () => {
      const client = createClient(StreamsDefinition, await failing());
      return () => client.count({ count: 1 })[Symbol.asyncIterator]().next();
    },
  ],
  [
    'a channel that is closed',
    async () => {
      const channel = bed.channel(['a']);
      await channel.close();
      const client = createClient(EchoDefinition, channel);
      return () => client.echo({});
    },
  ],
  [
    'a queue that is full',
    async () => {
      bed.mute.add('a');
      const client = createClient(EchoDefinition, bed.channel(['a'], { queueMax: 0 }));
      return () => client.echo({});
    },
  ],
  [
    'a signal that has fired, a time limit of 0, an option that is wrong',
    async () => {
      const client = createClient(EchoDefinition, await failing());
      const options = [{ signal: AbortSignal.abort() }, { timeoutMs: 0 }, { timeoutMs: -1 }];
      let i = 0;
      return () => client.echo({}, options[++i % options.length]);
    },
  ],
  [
    'retries and hedging that are wrong',
    async () => {
      const client = createClient(EchoDefinition, await failing());
      const options = [{ hedging: { delayMs: 1 } }, { retry: { attemptsMax: 99 } }];
      let i = 0;
      return () => client.echo({}, options[++i % options.length]);
    },
  ],
  [
    'a request that cannot be encoded',
    async () => {
      bed.start('a');
      const channel = bed.channel(['a']);
      await channel.ready();
      const client = createClient(EchoDefinition, channel);
      return () => client.echo({ text: 7 as never });
    },
  ],
];

describe('the event loop turns at least once for each of many calls that fail one after the other', () => {
  test.each(ways)('%s', async (_, start) => {
    const turns = await turnsDuring(await start());
    expect(turns).toBeGreaterThanOrEqual(tries - 1);
  });
});

test('an application that calls in an endless loop reaches the restarted server', async () => {
  bed.start('a');
  const channel = bed.channel(['a'], { backoffMs: 1, backoffMaxMs: 5 });
  const client = createClient(EchoDefinition, channel);
  await client.echo({});
  await bed.stop('a');
  await until(() => channel.state === 'idle');
  let failures = 0;
  setTimeout(() => bed.start('a'), 50);
  for (;;) {
    try {
      expect((await client.echo({ number: 6 })).number).toBe(6);
      break;
    } catch (error) {
      expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' } satisfies Partial<RpcError>);
      ++failures;
      // Without event-loop iterations the loop would never end.
      if (failures > 200_000) throw error;
    }
  }
  expect(failures).toBeGreaterThan(0);
});

test('a test that has replaced all timers by its own clock still gets its errors', async () => {
  const channel = bed.channel(['a']);
  await channel.close();
  vi.useFakeTimers();
  try {
    await expect(createClient(EchoDefinition, channel).echo({})).rejects.toThrow(/the channel is closed/);
  } finally {
    vi.useRealTimers();
  }
});
