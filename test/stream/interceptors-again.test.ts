/**
 * Tests interceptors that call `next` more than once for a call with streams. Requests that can be sent again
 * are sent again; others are refused with an explanation.
 */
import { createClient, type Interceptor, RpcError, type RpcResponse, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { openPair, type Pair, pairWays } from '../runtime/pair.ts';
import { type ItemInit, StreamsDefinition } from './gen/stream.rdma.ts';
import { collect } from './stream-world.ts';

let pair: Pair | undefined;
afterEach(async () => {
  await pair?.close();
  pair = undefined;
});

type Side = 'client' | 'server';

/** Makes a call up to three times, as long as it fails before its first message. */
const retry =
  (side: Side): Interceptor =>
  (next) =>
  async (request) => {
    if (request.side !== side) return next(request);
    for (let attempt = 1; ; ++attempt) {
      try {
        return await withFirst(await next(request));
      } catch (error) {
        if (attempt === 3 || RpcError.from(error).code !== Status.UNAVAILABLE) throw error;
      }
    }
  };

async function withFirst(response: RpcResponse): Promise<RpcResponse> {
  if (!response.stream) return response;
  const messages = response.message[Symbol.asyncIterator]();
  const first = await messages.next();
  async function* all() {
    if (first.done === true) return;
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => messages };
  }
  return { ...response, message: all() };
}

const list = [{ number: 1 }, { number: 2 }, { number: 4 }];
async function* generated(): AsyncIterable<ItemInit> {
  yield* list;
}
function* generatedNow(): Iterable<ItemInit> {
  yield* list;
}

describe.each(pairWays)('%s', (way) => {
  /** The first two calls of each handler fail when they have read their requests. */
  async function open(side: Side) {
    const runs: number[][] = [];
    const fail = (numbers: number[]) => {
      runs.push(numbers);
      if (runs.length < 3) throw new RpcError(Status.UNAVAILABLE, 'not yet');
    };
    const seen = async (items: AsyncIterable<{ number: number }>) =>
      fail((await collect(items)).map(({ number }) => number));
    const faults: string[] = [];
    pair = await openPair(
      way,
      (server) =>
        server.use(...(side === 'server' ? [retry(side)] : [])).add(StreamsDefinition, {
          async *count({ count }) {
            fail([count]);
            yield { number: count };
          },
          async sum(items) {
            await seen(items);
            return { number: runs.length };
          },
          async *echo(items) {
            await seen(items);
            yield { number: runs.length };
          },
        }),
      { onHandlerError: (error) => faults.push(String(error)) },
    );
    const interceptors = side === 'client' ? [retry(side)] : [];
    return {
      client: createClient(StreamsDefinition, pair.channel, { '*': { interceptors } }),
      runs,
      faults,
    };
  }

  test.each(['client', 'server'] as const)(
    'one request and a stream of responses are repeated, on the %s',
    async (side) => {
      const { client, runs } = await open(side);
      expect(await collect(client.count({ count: 7 }))).toMatchObject([{ number: 7 }]);
      expect(runs).toEqual([[7], [7], [7]]);
    },
  );

  test('all requests of a list are sent again', async () => {
    const { client, runs } = await open('client');
    expect(await client.sum(list)).toMatchObject({ number: 3 });
    expect(runs.splice(0)).toEqual([
      [1, 2, 4],
      [1, 2, 4],
      [1, 2, 4],
    ]);
    expect(await collect(client.echo(new Set(list)))).toMatchObject([{ number: 3 }]);
    expect(runs).toHaveLength(3);
  });

  test.each([
    ['an async generator', generated],
    ['a generator', generatedNow],
  ])('requests of %s are not', async (_, requests) => {
    const { client, runs } = await open('client');
    const once = /called next\(\) again, but the requests of this call can be read only once: give it others/;
    await expect(client.sum(requests())).rejects.toThrow(once);
    await expect(collect(client.echo(requests()))).rejects.toThrow(once);
    // No handler has run with missing requests.
    expect(runs).toEqual([
      [1, 2, 4],
      [1, 2, 4],
    ]);
  });

  test('on the server requests arrive once', async () => {
    const { client, runs, faults } = await open('server');
    await expect(client.sum(list)).rejects.toMatchObject({ code: Status.INTERNAL });
    expect(runs).toEqual([[1, 2, 4]]);
    expect(faults).toEqual([expect.stringMatching(/called next\(\) again/)]);
  });

  test('two simultaneous attempts do not share the requests', async () => {
    const { client } = await open('server');
    const twice: Interceptor = (next) => async (request) =>
      (await Promise.all([next(request), next(request)]))[1];
    const both = createClient(StreamsDefinition, pair!.channel, { '*': { interceptors: [twice] } });
    await expect(both.sum(generated())).rejects.toThrow(/can be read only once/);
    expect(client).toBeDefined();
  });

  test('a handler may return a promise of its iterable, with and without interceptors', async () => {
    pair = await openPair(way, (server) =>
      server
        .use((next) => (request) => next(request))
        .add(StreamsDefinition, {
          count: (async ({ count }: { count: number }) => [{ number: count }]) as never,
        }),
    );
    const client = createClient(StreamsDefinition, pair.channel);
    expect(await collect(client.count({ count: 3 }))).toMatchObject([{ number: 3 }]);
  });
});
