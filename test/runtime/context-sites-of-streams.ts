/**
 * Lists more sites for test/runtime/async-context.test.ts: functions that run for streams, after
 * interceptors, for telemetry, and when a call fails, is repeated or is cancelled.
 */
import { type Interceptor, RpcError, type RpcRequest, Status } from 'rdma-rpc';
import { openTelemetry } from 'rdma-rpc/otel';
import { type Calls, drain, type Look, numbers, type Site, tick, unending } from './context-sites.ts';

const none = ((then?: unknown) => then) as Look;

async function* seen(messages: AsyncIterable<unknown>, look: Look): AsyncGenerator<never> {
  look();
  for await (const message of messages) yield look(message) as never;
  look();
}

/** An interceptor that records the store around a call and at each of its messages. */
const lookingAtMessages =
  (look: Look): Interceptor =>
  (next) =>
  async (request) => {
    const given = request.stream ? { ...request, message: seen(request.message, look) } : request;
    const response = await next(look(given) as RpcRequest);
    return response.stream ? { ...response, message: seen(response.message, look) } : look(response);
  };

const failure = new RpcError(Status.NOT_FOUND, 'on purpose', { trailer: { reason: 'r' } });
/** Calls that never end by themselves. */
const never = {
  echo: () => new Promise<never>(() => undefined),
  sum: () => new Promise<never>(() => undefined),
};

/** Returns a tracer without effects. */
const telemetry = (look: Look): Interceptor => {
  const span = {
    setStatus: () => look(span),
    recordException: () => undefined,
    setAttributes: () => look(span),
    spanContext: () => look({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 }),
    end: () => look(),
  };
  return openTelemetry({
    attributes: () => look({}),
    tracerProvider: { getTracer: () => ({ startSpan: () => look(span) }) } as never,
    propagator: {
      extract: (context: unknown) => look(context),
      inject: () => look(),
      fields: () => [],
    } as never,
  });
};

const requestsOf = (options: () => object): Site => ({
  sees: 'bob',
  streams: () => ({ sum: never.sum }),
  bob: (look, { streams }) => streams.sum(unending(look), options()).catch(() => undefined),
});

const signalOfStream = (options: () => object): Site => ({
  streams: (look) => ({
    echo: async function* (_, { signal }) {
      yield { number: 0 };
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(look())));
    },
  }),
  bob: (_, { streams }) => drain(streams.echo(numbers(none, 1), options())).catch(() => undefined),
});

/**
 * Getters of messages may be called at once. Such getters may also be called later, when there is credit,
 * outside of any caller's context.
 */
const itemsThat = (look: Look) =>
  Array.from({ length: 40 }, () => ({
    get text() {
      return look('x'.repeat(4000));
    },
  }));

const leave = async ({ streams }: Calls) => {
  for await (const _ of streams.echo(numbers(none, 1))) break;
  await tick();
};

export const sitesOfStreams: Readonly<Record<string, Site>> = {
  'an interceptor of the server, for a stream of responses': {
    use: lookingAtMessages,
    bob: (_, { streams }) => drain(streams.count({})),
  },
  'an interceptor of the server, for a stream of requests': {
    use: lookingAtMessages,
    bob: (_, { streams }) => streams.sum(numbers(none)),
  },
  'an interceptor of the server, for two streams': {
    use: lookingAtMessages,
    bob: (_, { streams }) => drain(streams.echo(numbers(none))),
  },
  'an interceptor of a scope of the server': { scope: lookingAtMessages },
  'an interceptor of a client, for a stream of responses': {
    sees: 'bob',
    alone: true,
    channel: (look) => ({ interceptors: [lookingAtMessages(look)] }),
    bob: (_, { streams }) => drain(streams.count({})),
  },
  'an interceptor of a client, for two streams': {
    sees: 'bob',
    alone: true,
    channel: (look) => ({ interceptors: [lookingAtMessages(look)] }),
    bob: (_, { streams }) => drain(streams.echo(numbers(none))),
  },
  'the end of what a handler gives, which its caller has left': {
    streams: (look) => ({
      echo: async function* () {
        yield* unending(look);
      },
    }),
    bob: (_, calls) => leave(calls),
  },
  'the requests of a stream whose caller leaves it': {
    sees: 'bob',
    bob: async (look, { streams }) => {
      for await (const _ of streams.echo(unending(look))) break;
    },
  },
  'the requests of a stream that is given up': requestsOf(() => ({ signal: AbortSignal.timeout(20) })),
  'the requests of a stream whose time is up': requestsOf(() => ({ timeoutMs: 20 })),
  'a listener of the signal of a stream that is given up': signalOfStream(() => ({
    signal: AbortSignal.timeout(50),
  })),
  'a listener of the signal of a stream whose time is up': signalOfStream(() => ({ timeoutMs: 50 })),
  'a getter of a message that a handler gives': {
    streams: (look) => ({
      count: async function* () {
        yield* itemsThat(look);
      },
    }),
    bob: (_, { streams }) => drain(streams.count({})),
  },
  'a getter of a request of a stream': {
    sees: 'bob or nobody',
    bob: (look, { streams }) => streams.sum(itemsThat(look)),
  },
  'onTrailer of a call that fails': {
    sees: 'bob',
    handlers: () => ({
      behave: () => {
        throw failure;
      },
    }),
    bob: (look, { echo }) => echo.behave({}, { onTrailer: () => look() }).catch(() => undefined),
  },
  'onTrailer of a stream that fails': {
    sees: 'bob',
    streams: () => ({
      behave: async function* () {
        yield { number: 1 };
        throw failure;
      },
    }),
    bob: (look, { streams }) => drain(streams.behave({}, { onTrailer: () => look() })).catch(() => undefined),
  },
  'a getter of a request that is made again': {
    sees: 'bob',
    handlers: () => ({
      fetch: () => {
        throw new RpcError(Status.UNAVAILABLE, 'on purpose');
      },
    }),
    bob: (look, { echo }) => {
      const request = {
        get text() {
          return look('text');
        },
      };
      const retry = { attemptsMax: 3, backoffMs: 1 };
      return echo.fetch(request, { retry }).catch(() => undefined);
    },
  },
  'a getter of a request that is hedged': {
    sees: 'bob',
    handlers: () => ({ fetch: (request) => tick().then(() => tick().then(() => request)) }),
    bob: (look, { echo }) => {
      const request = {
        get text() {
          return look('text');
        },
      };
      return echo.fetch(request, { hedging: { delayMs: 0 } });
    },
  },
  'telemetry of a server': { use: telemetry },
  'telemetry of a server, for a stream': {
    use: telemetry,
    bob: (_, { streams }) => drain(streams.count({})),
  },
  'telemetry of a client': {
    sees: 'bob',
    alone: true,
    channel: (look) => ({ interceptors: [telemetry(look)] }),
  },
  'telemetry of a client, for a stream': {
    sees: 'bob',
    alone: true,
    channel: (look) => ({ interceptors: [telemetry(look)] }),
    bob: (_, { streams }) => drain(streams.count({})),
  },
};
