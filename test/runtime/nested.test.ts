/**
 * Tests calls that a handler makes on behalf of its caller. When the handler's context is passed to them,
 * they end when the caller's call ends, independent of their own limits.
 */
import { type CallOptions, type Client, createClient, type HandlerContext, RpcError, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { comes } from '../outcomes.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { openPair, type Pair, pairWays } from './pair.ts';

const pairs: Pair[] = [];
afterEach(async () => {
  for (const pair of pairs.splice(0)) await pair.close();
});

const outcome = (call: Promise<unknown>): Promise<RpcError | undefined> =>
  call.then(() => undefined, RpcError.from);

describe.each(pairWays)('%s', (way) => {
  /**
   * Starts two servers, front and back. `behave` of the front server calls `nested`, and its failure is
   * recorded.
   */
  async function chain(
    nested: (back: Client<typeof EchoDefinition>, context: HandlerContext) => Promise<object>,
    defaultMs?: number,
  ) {
    const failures: (RpcError | undefined)[] = [];
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const hang = (_: object, { signal }: HandlerContext) =>
      new Promise<object>((resolve) => {
        begin();
        signal.addEventListener('abort', () => resolve({}));
      });
    const far = await openPair(way, (server) =>
      server
        .add(EchoDefinition, {
          echo: (_, context) => ({ number: Math.ceil(context.timeoutMs() ?? 0) }),
          behave: hang,
        })
        .add(StreamsDefinition, {
          async *count(_, context) {
            yield { number: 1 };
            yield await hang({}, context);
          },
        }),
    );
    pairs.push(far);
    const defaults = defaultMs === undefined ? {} : { '*': { timeoutMs: defaultMs } };
    const back = createClient(EchoDefinition, far.channel, defaults);
    const near = await openPair(way, (server) =>
      server.add(EchoDefinition, {
        behave: async (_, context) => {
          try {
            return await nested(back, context);
          } catch (error) {
            failures.push(RpcError.from(error));
            throw error;
          }
        },
      }),
    );
    pairs.push(near);
    await Promise.all(pairs.map(({ channel }) => channel.ready()));
    return { front: createClient(EchoDefinition, near.channel), failures, begun };
  }

  test.each<[string, number | undefined, CallOptions, number | undefined, number]>([
    ['the remaining time of its caller', 10_000, {}, undefined, 10_000],
    ['its own limit when that is shorter', 10_000, { timeoutMs: 5000 }, undefined, 5000],
    [
      'the remaining time of its caller when its own limit is longer',
      5000,
      { timeoutMs: 10_000 },
      undefined,
      5000,
    ],
    ['the default of its client when that is shorter', 10_000, {}, 5000, 5000],
    ['its own limit when the caller has none', undefined, { timeoutMs: 5000 }, undefined, 5000],
    ['no limit when neither has one', undefined, {}, undefined, 0],
  ])('has %s', async (_, timeoutMs, options, defaultMs, most) => {
    const { front } = await chain((back, context) => back.echo({}, { ...options, context }), defaultMs);
    const { number } = await front.behave({}, { timeoutMs });
    expect(number).toBeLessThanOrEqual(most);
    expect(number).toBeGreaterThan(most - 5000);
  });

  test('ends with the deadline of its caller, and the error says so', async () => {
    const { front, failures, begun } = await chain((back, context) => back.behave({}, { context }));
    const call = outcome(front.behave({}, { timeoutMs: 1000 }));
    await comes(begun, 'the nested call');
    expect(await call).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
    await expect.poll(() => failures).toMatchObject([{ code: Status.DEADLINE_EXCEEDED, processed: 'maybe' }]);
  });

  test('is cancelled with the call of its caller', async () => {
    const { front, failures, begun } = await chain((back, context) => back.behave({}, { context }));
    const controller = new AbortController();
    const call = outcome(front.behave({}, { signal: controller.signal }));
    await comes(begun, 'the nested call');
    controller.abort();
    expect(await call).toMatchObject({ code: Status.CANCELLED });
    await expect
      .poll(() => failures)
      .toMatchObject([{ code: Status.CANCELLED, processed: 'maybe', cause: { code: Status.CANCELLED } }]);
  });

  test('ends with its caller when it is a stream', async () => {
    const { front, failures, begun } = await chain(async (_, context) => {
      const numbers = createClient(StreamsDefinition, pairs[0]!.channel).count({}, { context });
      for await (const { number } of numbers) if (number > 1_000_000) break;
      return {};
    });
    const controller = new AbortController();
    const call = outcome(front.behave({}, { signal: controller.signal }));
    await comes(begun, 'the nested call');
    controller.abort();
    expect(await call).toMatchObject({ code: Status.CANCELLED });
    await expect.poll(() => failures).toMatchObject([{ code: Status.CANCELLED, processed: 'maybe' }]);
  });

  test('is cancelled by its own signal, too', async () => {
    const controller = new AbortController();
    const { front, begun } = await chain((back, context) =>
      back.behave({}, { context, signal: controller.signal }),
    );
    const call = outcome(front.behave({}));
    await comes(begun, 'the nested call');
    controller.abort('own');
    expect(await call).toMatchObject({ code: Status.CANCELLED });
  });

  test('is not sent when its caller has ended already', async () => {
    const gone = new AbortController();
    const { front, failures } = await chain(async (back, context) => {
      await new Promise((resolve) => {
        context.signal.addEventListener('abort', resolve);
        gone.abort();
      });
      return back.behave({}, { context });
    });
    expect(await outcome(front.behave({}, { signal: gone.signal }))).toMatchObject({
      code: Status.CANCELLED,
    });
    await expect.poll(() => failures).toMatchObject([{ code: Status.CANCELLED, processed: 'no' }]);
  });
});
