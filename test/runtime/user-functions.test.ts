/**
 * Tests each function that an application can pass, and each way in which it can fail. A failure may affect
 * at most the call to which the function belongs, while other calls of the connection are under way all the
 * time.
 */

import { Registry } from 'prom-client';
import {
  type CallOptions,
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  createServer,
  type HandlerContext,
  type HedgingOptions,
  type Interceptor,
  type Resolver,
  type RetryOptions,
  type Server,
  type ServerOptions,
  Status,
  stats,
} from 'rdma-rpc';
import { type ServingStatus, serveHealthHttp } from 'rdma-rpc/health';
import { openTelemetry } from 'rdma-rpc/otel';
import { prometheus } from 'rdma-rpc/prometheus';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tried } from '../extent.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';

type Anything = (...given: unknown[]) => unknown;

/** Returns a proxy that throws in every operation. */
function trap(): object {
  const fail = () => {
    throw new Error('a trap of a proxy');
  };
  const names = Object.getOwnPropertyNames(Reflect).filter(
    (name) => typeof Reflect[name as 'get'] === 'function',
  );
  return new Proxy(() => {}, Object.fromEntries(names.map((name) => [name, fail])));
}

let others: (() => unknown)[] = [];
const misdeeds: Readonly<Record<string, Anything>> = {
  throws: () => {
    throw new Error('on purpose');
  },
  'throws what cannot be looked at': () => {
    throw trap();
  },
  'throws what is no text': () => {
    throw Object.create(null);
  },
  'throws an error with getters': () => {
    throw Object.defineProperties(new Error('x'), {
      name: { get: () => misdeeds.throws!() },
      message: { get: () => misdeeds.throws!() },
      cause: { get: () => misdeeds.throws!() },
    });
  },
  rejects: () => Promise.reject(new Error('on purpose')),
  'rejects with what cannot be looked at': () => Promise.reject(trap()),
  'never ends': () => new Promise(() => {}),
  'gives what cannot be looked at': () => trap(),
  'gives a then that throws when asked for': () => ({
    // biome-ignore lint/suspicious/noThenProperty: it is about that
    get then() {
      throw new Error('then');
    },
  }),
  'gives a then that throws': () => ({
    // biome-ignore lint/suspicious/noThenProperty: it is about that
    then: () => {
      throw new Error('then');
    },
  }),
  'gives a then that settles twice': () => ({
    // biome-ignore lint/suspicious/noThenProperty: it is about that
    then: (resolve: Anything, reject: Anything) => {
      reject(new Error('first'));
      resolve({});
      throw new Error('last');
    },
  }),
  'gives nothing': () => undefined,
  'gives a symbol': () => Symbol('no'),
  'calls everything': () => {
    for (const each of others) each();
    return {};
  },
};

interface Site {
  readonly server?: (bad: Anything) => ServerOptions;
  readonly use?: (bad: Anything) => Interceptor;
  readonly channel?: (bad: Anything) => ChannelOptions;
  readonly call?: (bad: Anything) => CallOptions;
  /** The value is wrong in the way that the `text` of the request asks for, as with `text: 'bad'`. */
  readonly request?: (bad: Anything) => object;
  readonly stream?: boolean;
  readonly resolver?: (bad: Anything, address: string) => Resolver;
  readonly also?: (bad: Anything, server: Server) => void;
  /** Runs in the handler of `behave`. */
  readonly handler?: (bad: Anything, context: HandlerContext) => Promise<void>;
  /** Runs beside the call. */
  readonly beside?: (bad: Anything, misdeed: string) => Promise<unknown>;
  /** The failure only causes a warning, and the call must succeed. */
  readonly harmless?: boolean;
}

/** An interceptor that misbehaves for calls that ask for it. */
const only =
  (bad: Anything): Interceptor =>
  (next) =>
  (request) =>
    request.metadata.get('bad') === undefined ? next(request) : (bad(request) as ReturnType<typeof next>);
const behind =
  (bad: Anything): Interceptor =>
  (next) =>
  async (request) => {
    const response = await next(request);
    return request.metadata.get('bad') === undefined ? response : ((await bad(response)) as typeof response);
  };
/** A function that is called for all calls fails only in the first call. */
const once = (bad: Anything): Anything => {
  let done = false;
  return (...given) => {
    if (done) return undefined;
    done = true;
    return bad(...given);
  };
};
const span = (end: Anything) => ({
  setStatus: () => undefined,
  recordException: () => undefined,
  setAttributes: () => undefined,
  spanContext: () => ({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 }),
  end,
});

/** Returns an object with a getter. */
const getting = (on: object, name: string, get: Anything): object =>
  Object.defineProperty(on, name, { get: () => get(), enumerable: true });

const sites: Readonly<Record<string, Site>> = {
  'a handler': {},
  'a handler of a stream': { stream: true },
  onHandlerError: { server: (bad) => ({ onHandlerError: bad }), harmless: false },
  log: { server: (bad) => ({ log: bad as (line: string) => void, onHandlerError: () => undefined }) },
  'an interceptor of the server': { use: only },
  'an interceptor of the server, behind the call': { use: behind },
  'an interceptor of the client': { channel: (bad) => ({ interceptors: [only(bad)] }) },
  'an interceptor of the client, behind the call': { channel: (bad) => ({ interceptors: [behind(bad)] }) },
  onHeader: { call: (bad) => ({ onHeader: bad }) },
  onTrailer: { call: (bad) => ({ onTrailer: bad }) },
  'a listener of the signal': {
    handler: async (bad, { signal }) => {
      signal.addEventListener('abort', bad);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    },
  },
  'an object that listens to the signal': {
    handler: async (bad, { signal }) => {
      signal.addEventListener('abort', { handleEvent: bad });
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    },
  },
  'onabort of the signal': {
    handler: async (bad, { signal }) => {
      signal.onabort = bad;
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    },
  },
  'attemptsMax of a retry': { call: (bad) => ({ retry: getting({}, 'attemptsMax', bad) as RetryOptions }) },
  'an entry of the codes of a retry': {
    call: (bad) => ({ retry: { codes: getting([], '0', bad) } as unknown as RetryOptions }),
  },
  'delayMs of hedging': { call: (bad) => ({ hedging: getting({}, 'delayMs', bad) as HedgingOptions }) },
  'onHeader of a call with retries': { call: (bad) => ({ onHeader: bad, retry: { attemptsMax: 2 } }) },
  'onTrailer of a hedged call': { call: (bad) => ({ onTrailer: bad, hedging: { delayMs: 1 } }) },
  'a getter of a request with retries': {
    call: () => ({ retry: { attemptsMax: 2, backoffMs: 0, codes: [Status.INTERNAL] } }),
    request: (bad) => getting({}, 'text', bad),
  },
  'what a probe of health asks': {
    beside: async (bad, misdeed) => {
      const http = await serveHealthHttp({ statusOf: bad as () => ServingStatus });
      const response = await fetch(`http://${http.address}/readyz`);
      expect(response.status).toBe(misdeed === 'gives nothing' ? 404 : 503);
      await http.close();
    },
    harmless: true,
  },
  'a getter of a request': {
    request: (bad) => ({
      get text() {
        return bad() as string;
      },
    }),
  },
  'metadata of a call': {
    call: (bad) => ({
      metadata: {
        get key() {
          return bad() as string;
        },
      },
    }),
  },
  'attributes of OpenTelemetry': {
    use: (bad) => openTelemetry({ attributes: once(bad) as () => Record<string, string> }),
    harmless: true,
  },
  'a tracer': {
    use: (bad) => openTelemetry({ tracerProvider: { getTracer: bad } as never }),
    harmless: true,
  },
  'the end of a span': {
    use: (bad) =>
      openTelemetry({ tracerProvider: { getTracer: () => ({ startSpan: () => span(bad) }) } as never }),
    harmless: true,
  },
  'a propagator': {
    use: (bad) => openTelemetry({ propagator: { extract: bad, inject: bad, fields: bad } as never }),
    harmless: true,
  },
  'a registry of Prometheus': {
    use: (bad) => {
      const registry = new Registry();
      registry.getSingleMetric = bad as typeof registry.getSingleMetric;
      return prometheus({ registry });
    },
    harmless: true,
  },
  'a resolver': {
    resolver: (bad, address) => {
      let asked = 0;
      return {
        resolve: () => (++asked === 1 ? (bad() as Promise<string[]>) : Promise.resolve([address])),
      };
    },
  },
  'what a resolver watches with': {
    resolver: (bad, address) => ({ resolve: async () => [address], watch: () => bad as () => void }),
    harmless: true,
  },
  'a listener of onShutdown': { also: (bad, server) => server.onShutdown(bad as () => void), harmless: true },
};

const unheard: unknown[] = [];
const hear = (fault: unknown) => unheard.push(fault);
beforeEach(() => {
  unheard.length = 0;
  process.on('uncaughtException', hear);
  process.on('unhandledRejection', hear);
});
afterEach(() => {
  process.off('uncaughtException', hear);
  process.off('unhandledRejection', hear);
});

describe.each(Object.keys(sites))('%s', (name) => {
  const site = sites[name]!;
  const row = Object.keys(sites).indexOf(name);
  const tries = Object.keys(misdeeds).filter((_, column) => tried(row, column));
  test.each(tries)('%s, and affects only its own call', async (misdeed) => {
    let calls = 0;
    const bad: Anything = (...given) => {
      ++calls;
      return misdeeds[misdeed]!(...given);
    };
    const waiting: (() => void)[] = [];
    const gates = () => new Promise<void>((resolve) => waiting.push(resolve));
    const server = createServer({ onHandlerError: () => undefined, ...site.server?.(bad) });
    if (site.use !== undefined) server.use(site.use(bad));
    server.add(EchoDefinition, {
      echo: (request) => request,
      fetch: async (request) => {
        await gates();
        return request;
      },
      behave: (request, context) => {
        context.header.set('header', 'h');
        context.trailer.set('trailer', 't');
        if (site.server !== undefined) throw new Error('so that it is told');
        if (site.handler !== undefined) return site.handler(bad, context).then(() => request);
        return name === 'a handler' ? (bad() as object) : request;
      },
    });
    server.add(StreamsDefinition, { behave: (() => bad()) as never });
    site.also?.(bad, server);
    const address = await server.listen('127.0.0.1:0');
    const target = site.resolver?.(bad, address) ?? address;
    const channel: Channel = createChannel(target, {
      connectTimeoutMs: 300,
      backoffMs: 1,
      backoffMaxMs: 5,
      ...site.channel?.(bad),
    });
    const client = createClient(EchoDefinition, channel, { behave: { idempotent: true } });
    const streams = createClient(StreamsDefinition, channel);
    others = [
      () => void client.echo({ text: 'nested' }).catch(() => undefined),
      () => channel.state,
      () => server.sessions,
      () => stats(),
      () =>
        void streams
          .count({ count: 1 })
          [Symbol.asyncIterator]()
          .next()
          .catch(() => undefined),
    ];
    await channel.ready().catch(() => undefined);

    const slow = Array.from({ length: 10 }, (_, i) => client.fetch({ number: i }, { waitForReady: true }));
    while (waiting.length < slow.length) await new Promise((resolve) => setImmediate(resolve));
    const sessions = server.sessions.length;
    // Only calls that may fail have a short time limit, so that the other calls also succeed on a slow
    // machine.
    const timeoutMs = site.harmless === true ? 60_000 : 300;
    const options = { metadata: { bad: '1' }, timeoutMs, ...site.call?.(bad) };
    const request = site.request?.(bad) ?? { text: 'bad' };
    const suffering =
      site.stream === true
        ? streams.behave({ text: 'bad' }, options)[Symbol.asyncIterator]().next()
        : client.behave(request, options);
    const beside = site.beside?.(bad, misdeed);
    const quick = Array.from({ length: 10 }, (_, i) => client.echo({ number: i }));
    const result = suffering.then(
      () => 'good',
      () => 'failed',
    );
    if (site.harmless === true) expect(await result).toBe('good');
    expect((await Promise.all(quick)).map(({ number }) => number)).toEqual(quick.map((_, i) => i));
    for (const release of waiting) release();
    await beside;
    expect((await Promise.all(slow)).map(({ number }) => number)).toEqual(slow.map((_, i) => i));
    // A function that never ends may delay its own call, but no other call.
    if (misdeed !== 'never ends') await result;
    expect(server.sessions.length).toBe(sessions);
    await channel.close();
    await server.shutdown({ graceMs: 0 });
    await new Promise((resolve) => setImmediate(resolve));
    expect(unheard).toEqual([]);
    // Checks that the function was called; otherwise the test would show nothing.
    expect(calls).toBeGreaterThan(0);
  });
});
