/** Tests client interceptors that never return. `timeoutMs` and `signal` end the call nevertheless. */
import { createClient, type Interceptor, Metadata, RpcError, type RpcRequest, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { collect } from '../stream/stream-world.ts';
import { openPair, type Pair, pairWays } from './pair.ts';

const never = new Promise<never>(() => undefined);
const numbers = [{ number: 1 }, { number: 2 }];
const hang: Interceptor = () => () => never;
const hangBehind: Interceptor = (next) => async (request) => {
  await next(request);
  return never;
};
const hangInMessages: Interceptor = (next) => async (request) => {
  const response = await next(request);
  if (!response.stream) return never;
  async function* messages() {
    for await (const message of response.message as AsyncIterable<unknown>) yield message;
    await never;
  }
  return { ...response, message: messages() };
};
const hangInRequests: Interceptor = (next) => (request) => {
  if (!request.stream) return never;
  async function* messages() {
    yield* request.message as AsyncIterable<unknown>;
    await never;
  }
  return next({ ...request, message: messages() });
};

let pair: Pair;
let runs = 0;
describe.each(pairWays)('%s', (way) => {
  beforeEach(async () => {
    runs = 0;
    pair = await openPair(way, (server) =>
      server.add(StreamsDefinition, {
        unary: (order) => ({ number: ++runs, text: order.text }),
        count: () => [{ number: ++runs }],
        sum: async (items) => ({ number: ++runs, text: `${(await collect(items)).length}` }),
        async *echo(items) {
          ++runs;
          for await (const { number } of items) yield { number };
        },
      }),
    );
  });
  afterEach(() => pair.close());

  type Options = { timeoutMs?: number; signal?: AbortSignal };
  const kinds = ['unary', 'count', 'sum', 'echo'] as const;
  function call(kind: (typeof kinds)[number], interceptor: Interceptor, options: Options): Promise<RpcError> {
    const client = createClient(StreamsDefinition, pair.channel, { '*': { interceptors: [interceptor] } });
    const made = {
      unary: () => client.unary({}, options),
      count: () => collect(client.count({ count: 1 }, options)),
      sum: () => client.sum(numbers, options),
      echo: () => collect(client.echo(numbers, options)),
    }[kind]();
    return made.then(
      () => Promise.reject(new Error('it worked')),
      (error: unknown) => error as RpcError,
    );
  }

  const interceptors = { hang, hangBehind, hangInMessages, hangInRequests };
  const cases = kinds.flatMap((kind) =>
    (Object.keys(interceptors) as (keyof typeof interceptors)[]).map((name) => [kind, name] as const),
  );

  test.each(cases)('%s, %s: a time limit ends the call', async (kind, name) => {
    const error = await call(kind, interceptors[name], { timeoutMs: 20 });
    expect(error).toBeInstanceOf(RpcError);
    expect(error.code).toBe(Status.DEADLINE_EXCEEDED);
  });

  test.each(cases)('%s, %s: a signal ends the call', async (kind, name) => {
    const leaving = new AbortController();
    const failed = call(kind, interceptors[name], { signal: leaving.signal });
    setImmediate(() => leaving.abort());
    expect((await failed).code).toBe(Status.CANCELLED);
    // This signal was aborted before the call.
    expect((await call(kind, interceptors[name], { signal: leaving.signal })).code).toBe(Status.CANCELLED);
  });

  test('the error names the interceptor and the state of the request', async () => {
    expect(await call('unary', hang, { timeoutMs: 1 })).toMatchObject({
      rawMessage: 'test.stream.Streams/Unary: the deadline passed (an interceptor has not returned)',
      processed: 'no',
    });
    expect(runs).toBe(0);
    const leaving = new AbortController();
    const leave: Interceptor = (next) => async (request) => {
      await next(request);
      leaving.abort();
      return never;
    };
    expect(await call('unary', leave, { signal: leaving.signal })).toMatchObject({
      rawMessage: 'test.stream.Streams/Unary: cancelled by the caller (an interceptor has not returned)',
      processed: 'yes',
    });
  });

  test('an interceptor that returns too late has no effect', async () => {
    let late: Promise<unknown> | undefined;
    let goOn: (() => void) | undefined;
    const sleeper: Interceptor = (next) => async (request) => {
      const slept = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      const made = slept.then(() => next(request));
      late = made.catch((error: unknown) => error);
      return made;
    };
    const error = await call('unary', sleeper, { timeoutMs: 5 });
    expect(error.code).toBe(Status.DEADLINE_EXCEEDED);
    goOn?.();
    expect(await late).toMatchObject({ code: Status.DEADLINE_EXCEEDED, processed: 'no' });
    expect(runs).toBe(0);
  });

  test('an interceptor can give its call more time', async () => {
    const longer: Interceptor = (next) => async (request) => {
      const made = next({ ...request, timeoutMs: 60_000 });
      // Another call with the same limit began later and has already ended, so the limit of this caller is
      // over.
      await call('unary', hang, { timeoutMs: 1 });
      return made;
    };
    const client = createClient(StreamsDefinition, pair.channel, { '*': { interceptors: [longer] } });
    expect((await client.unary({ text: 'ok' }, { timeoutMs: 1 })).text).toBe('ok');
  });

  const options = { timeoutMs: 60_000 };
  test.each([
    ['a time limit', () => ({ timeoutMs: 20 }), Status.DEADLINE_EXCEEDED],
    ['a signal', () => ({ signal: AbortSignal.timeout(20) }), Status.CANCELLED],
  ])('%s holds for a caller that gets the result of another call', async (_, own, code) => {
    const first: ReturnType<ReturnType<Interceptor>>[] = [];
    // One call serves all callers that make the same call.
    const once: Interceptor = (next) => (request) => {
      if (first.length === 0) first.push(next(request));
      return first[0]!;
    };
    const leaving = new AbortController();
    const client = createClient(StreamsDefinition, pair.channel, { '*': { interceptors: [once, hang] } });
    const asked = client.unary({}, { ...options, signal: leaving.signal }).catch(() => undefined);
    await expect(client.unary({}, own())).rejects.toMatchObject({ code });
    leaving.abort();
    await asked;
  });

  test.each([
    ['another call', (request: RpcRequest) => ({ ...request, signal: undefined })],
    [
      'a call without a limit',
      (request: RpcRequest) => ({ ...request, timeoutMs: undefined, signal: undefined }),
    ],
  ])("the caller's signal still applies when an interceptor makes the call %s", async (_, changed) => {
    const deaf: Interceptor = (next) => (request) => next(changed(request));
    const slow = await openPair(way, (server) => server.add(StreamsDefinition, { unary: () => never }));
    const client = createClient(StreamsDefinition, slow.channel, { '*': { interceptors: [deaf] } });
    const leaving = new AbortController();
    const failed = client.unary({}, { signal: leaving.signal });
    setImmediate(() => leaving.abort());
    await expect(failed).rejects.toMatchObject({ code: Status.CANCELLED });
    await slow.close();
  });

  test('a signal that an interceptor aborts before it calls next keeps the request from being sent', async () => {
    const leaving = new AbortController();
    const leave: Interceptor = (next) => (request) => {
      leaving.abort();
      return next({ ...request, signal: undefined });
    };
    expect(await call('unary', leave, { signal: leaving.signal })).toMatchObject({
      code: Status.CANCELLED,
      processed: 'no',
    });
    expect(runs).toBe(0);
  });

  test('10,000 calls with a signal that never fires leave nothing on the signal', async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = ((...all: Parameters<typeof addEventListener>) => {
      ++listeners;
      return addEventListener.apply(signal, all);
    }) as typeof addEventListener;
    signal.removeEventListener = ((...all: Parameters<typeof removeEventListener>) => {
      --listeners;
      return removeEventListener.apply(signal, all);
    }) as typeof removeEventListener;
    const pass: Interceptor = (next) => (request) => next(request);
    const client = createClient(StreamsDefinition, pair.channel, { '*': { interceptors: [pass] } });
    for (let i = 0; i < 100; ++i)
      await Promise.all(Array.from({ length: 100 }, () => client.unary({}, { signal, timeoutMs: 60_000 })));
    expect(runs).toBe(10_000);
    expect(listeners).toBe(0);
  });

  test('a response without next settles at once, with a time limit or without', async () => {
    const answer: Interceptor =
      () =>
      async ({ service, method }) => {
        const parts = { service, method, header: new Metadata(), trailer: new Metadata() };
        return { ...parts, stream: false, message: { number: 5 } };
      };
    const client = createClient(StreamsDefinition, pair.channel, { '*': { interceptors: [answer] } });
    expect((await client.unary({}, { timeoutMs: 60_000 })).number).toBe(5);
    expect((await client.unary({})).number).toBe(5);
  });
});
