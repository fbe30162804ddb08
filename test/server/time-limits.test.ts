/**
 * Tests the limits of a server for the time of calls: which limit applies, and which side answers when it has
 * passed.
 */
import { createClient, createServer, type HandlerContext, RpcError, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { TimeLimits } from '../../runtime/server/time-limits.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openPair, type Pair, pairWays } from '../runtime/pair.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { collect } from '../stream/stream-world.ts';

test.each<[number | undefined, number | undefined, number, number]>([
  // The columns are the default, the maximum, the client's limit, and the limit that applies.
  [undefined, undefined, 0, 0],
  [undefined, undefined, 7000, 7000],
  [5, undefined, 0, 5000],
  [5, undefined, 7000, 7000],
  [undefined, 6, 0, 6000],
  [undefined, 6, 7000, 6000],
  [undefined, 6, 3000, 3000],
  [5, 6, 0, 5000],
  [9, 6, 0, 6000],
])('default %s ms, longest %s ms, given %d us: %d us', (defaultMs, maxMs, given, holds) => {
  expect(new TimeLimits(defaultMs, maxMs).limitUs(given)).toBe(holds);
});

test.each(['defaultTimeoutMs', 'timeoutMaxMs'])('%s of 0 is refused by name', (name) => {
  expect(() => createServer({ [name]: 0 })).toThrow(new RegExp(`${name}: 0 is not an integer from 1`));
});

const outcome = (call: Promise<unknown>): Promise<RpcError> =>
  call.then(() => Promise.reject(new Error('it worked')), RpcError.from);

describe.each(pairWays)('%s', (way) => {
  let pair: Pair | undefined;
  let reasons: unknown[] = [];
  let faults: unknown[] = [];
  afterEach(async () => {
    await pair?.close();
    pair = undefined;
  });

  /**
   * Starts a server with these options, and connects a client. `behave` answers when its signal fires;
   * `fetch` never answers; `echo` returns its remaining time.
   */
  async function open(options: { defaultTimeoutMs?: number; timeoutMaxMs?: number }) {
    reasons = [];
    faults = [];
    const told = (_: object, { signal }: HandlerContext) =>
      new Promise<object>((_resolve, reject) =>
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason);
          reject(new Error('too late to matter'));
        }),
      );
    pair = await openPair(
      way,
      (server) =>
        server
          .add(EchoDefinition, {
            echo: (_, context) => ({ number: Math.ceil(context.timeoutMs() ?? 0) }),
            behave: told,
            fetch: () => new Promise(() => {}),
          })
          .add(StreamsDefinition, {
            async *count(_, { signal }) {
              yield { number: 1 };
              await new Promise((resolve) => signal.addEventListener('abort', resolve));
            },
          }),
      { ...options, onHandlerError: (fault) => faults.push(fault) },
    );
    return createClient(EchoDefinition, pair.channel);
  }

  test('the effective limit is the one that the handler sees', async () => {
    const client = await open({ defaultTimeoutMs: 20_000, timeoutMaxMs: 40_000 });
    const seen = async (timeoutMs?: number) =>
      Math.ceil((await client.echo({}, { timeoutMs })).number / 10_000);
    expect(await seen()).toBe(2);
    expect(await seen(10_000)).toBe(1);
    expect(await seen(90_000)).toBe(4);
  });

  test.each([
    ['the client has no limit', { defaultTimeoutMs: 50 }, {}],
    ['the limit of the client is longer', { timeoutMaxMs: 500 }, { timeoutMs: 60_000 }],
  ])('%s: the server answers whatever its handler does', async (_, options, callOptions) => {
    const client = await open(options);
    const late = { code: Status.DEADLINE_EXCEEDED, processed: 'yes' };
    expect(await outcome(client.fetch({}, callOptions))).toMatchObject(late);
    const error = await outcome(client.behave({}, callOptions));
    expect(error).toMatchObject(late);
    expect(error.rawMessage).toMatch(/time limit of the server passed \(its options defaultTimeoutMs/);
    expect(reasons).toMatchObject([{ code: Status.DEADLINE_EXCEEDED }]);
    // The call has ended, so an error that the handler throws now reaches no caller. The handler's author
    // must still learn of the error.
    await client.echo({});
    expect(faults.map(String)).toEqual(['Error: too late to matter']);
  });

  test('a stream ends at its limit in the same way, after its earlier messages', async () => {
    await open({ timeoutMaxMs: 500 });
    const got: number[] = [];
    const call = (async () => {
      for await (const { number } of createClient(StreamsDefinition, pair!.channel).count({}))
        got.push(number);
    })();
    expect(await outcome(call)).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
    expect(got).toEqual([1]);
  });

  test('a call that ends in time is not affected', async () => {
    const client = await open({ timeoutMaxMs: 4_000_000 });
    for (let i = 0; i < 100; ++i) await client.echo({});
    expect(
      await collect(createClient(StreamsDefinition, pair!.channel).count({}, { timeoutMs: 20 })).catch(
        () => 0,
      ),
    ).toBe(0);
    expect(reasons).toEqual([]);
  });
});
