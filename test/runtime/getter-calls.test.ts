/**
 * Tests getters of a request that make calls while the request is being encoded. Each of these calls gets its
 * own slot, and is sent once.
 */
import {
  allocBuffer,
  type Channel,
  type ChannelOptions,
  configure,
  createClient,
  type Lease,
  RpcError,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { type Item, type ItemInit, StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { EchoDefinition, type EchoMessageInit } from './gen/echo.rdma.ts';
import { nativeWays, openPair, type Pair, type PairWay, pairWays } from './pair.ts';

const KiB = 1024;
configure({ arenaBytes: 8 * 1024 * KiB });

let pair: Pair | undefined;
afterEach(() => pair?.close());

let handled: number[] = [];
async function open(way: PairWay, options: ChannelOptions = {}) {
  handled = [];
  pair = await openPair(
    way,
    (server) =>
      server
        .add(EchoDefinition, {
          echo: (request) => {
            handled.push(request.number);
            return { number: request.number, text: `${request.text.length}` };
          },
        })
        .add(StreamsDefinition, {
          async *echo(items) {
            yield* items;
          },
        }),
    {},
    options,
  );
  await pair.channel.ready();
  return { client: createClient(EchoDefinition, pair.channel), channel: pair.channel };
}

/** Returns a request whose `text` is read more than once; the first read calls `act`. */
function acting(number: number, text: () => string, act: () => void): EchoMessageInit {
  let acted = false;
  return {
    number,
    get text() {
      if (!acted) act();
      acted = true;
      return text();
    },
  };
}

/** Checks that nothing in the arena is in use. */
function fill(channel: Channel): Lease[] {
  const leases: Lease[] = [];
  for (let bytes = 1024 * KiB; bytes > 4 * KiB; bytes /= 2) {
    try {
      for (;;) leases.push(allocBuffer(bytes - 4 * KiB, channel));
    } catch (error) {
      expect(error).toBeInstanceOf(RpcError);
    }
  }
  return leases;
}

describe.each(pairWays)('%s', (way) => {
  test.each([
    [3, 3],
    [3, 30_000],
    [30_000, 3],
    [30_000, 30_000],
  ])('a request with a text of %i characters makes a call with one of %i', async (outer, inner) => {
    const { client } = await open(way);
    let within: Promise<object> | undefined;
    const request = acting(
      1,
      () => 'x'.repeat(outer),
      () => {
        within = client.echo({ number: 2, text: 'y'.repeat(inner) });
      },
    );
    expect(await client.echo(request)).toMatchObject({ number: 1, text: `${outer}` });
    expect(await within).toMatchObject({ number: 2, text: `${inner}` });
    expect(handled.sort()).toEqual([1, 2]);
  });

  test('the inner call gets the last call slot when the outer one is refused', async () => {
    const { client } = await open(way, { inflightMax: 1 });
    let within: Promise<object> | undefined;
    const fails = acting(
      1,
      () => 7 as unknown as string,
      () => {
        within = client.echo({ number: 2 }, { timeoutMs: 30_000 });
      },
    );
    await expect(client.echo(fails)).rejects.toThrow(/text/);
    expect(await within).toMatchObject({ number: 2 });
  });

  test.runIf(nativeWays.includes(way))('an inner call waits for memory like its outer call', async () => {
    const { client, channel } = await open(way);
    await client.echo({});
    handled = [];
    const leases = fill(channel);
    let within: Promise<object> | undefined;
    let room = false;
    const text = 'x'.repeat(600 * KiB);
    const request: EchoMessageInit = {
      number: 1,
      get text() {
        if (room) within ??= client.echo({ number: 2, text: 'y'.repeat(1500 * KiB) });
        return text;
      },
    };
    const call = client.echo(request);
    for (let i = 0; i < 5; ++i) await client.echo({});
    room = true;
    leases.shift()?.release();
    while (within === undefined) await client.echo({});
    for (const lease of leases) lease.release();
    expect(await Promise.all([call, within])).toMatchObject([{ number: 1 }, { number: 2 }]);
    expect(handled.filter((number) => number !== 0).sort()).toEqual([1, 2]);
  });

  test('a stream message can open a stream', async () => {
    const { channel } = await open(way);
    const streams = createClient(StreamsDefinition, channel);
    const all = async (messages: AsyncIterable<Item>): Promise<number[]> => {
      const numbers: number[] = [];
      for await (const { number } of messages) numbers.push(number);
      return numbers;
    };
    let within: Promise<number[]> | undefined;
    async function* plain(): AsyncGenerator<ItemInit> {
      for (let number = 10; number < 13; ++number) yield { number };
    }
    async function* items(): AsyncGenerator<ItemInit> {
      yield { number: 1 };
      yield {
        number: 2,
        get text() {
          within ??= all(streams.echo(plain()));
          return '';
        },
      };
      yield { number: 3 };
    }
    expect(await all(streams.echo(items()))).toEqual([1, 2, 3]);
    expect(await within).toEqual([10, 11, 12]);
  });
});
