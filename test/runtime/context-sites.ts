/**
 * Lists each function that an application can pass, as an entry called a site. The function of a site records
 * the AsyncLocalStorage store that is current when it runs. test/runtime/async-context.test.ts uses the
 * sites.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type CallOptions,
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  type Handlers,
  type Interceptor,
  type Server,
  type ServerOptions,
} from 'rdma-rpc';
import { serveHealthHttp } from 'rdma-rpc/health';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';

export const user = new AsyncLocalStorage<string>();
export const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Records the current store each time a function runs, and returns its argument. */
export type Look = <T>(then?: T) => T;
export type Calls = ReturnType<typeof clients>;
export const clients = (channel: Channel) => ({
  echo: createClient(EchoDefinition, channel, { echo: { idempotent: true }, fetch: { idempotent: true } }),
  streams: createClient(StreamsDefinition, channel),
});

export interface Site {
  /** The store that the function must see: the caller's, or none (default). */
  readonly sees?: 'bob' | 'bob or nobody';
  /** True when other calls of the channel also run the function. */
  readonly alone?: boolean;
  readonly server?: (look: Look) => ServerOptions;
  readonly use?: (look: Look) => Interceptor;
  /** An interceptor of a scope that has only `EchoDefinition`. */
  readonly scope?: (look: Look) => Interceptor;
  readonly handlers?: (look: Look) => Partial<Handlers<typeof EchoDefinition>>;
  readonly streams?: (look: Look) => Partial<Handlers<typeof StreamsDefinition>>;
  readonly channel?: (look: Look) => ChannelOptions;
  readonly watch?: (look: Look, channel: Channel, server: Server) => void;
  /** The calls that bob makes; one call by default. */
  readonly bob?: (look: Look, calls: Calls, address: string) => Promise<unknown>;
  /** Runs after bob's calls, for instance a shutdown of the server. */
  readonly after?: (server: Server, channel: Channel) => Promise<unknown>;
}

export const drain = async (messages: AsyncIterable<unknown>): Promise<void> => {
  for await (const _ of messages);
};
export async function* numbers(look: Look, count = 40) {
  for (let number = 0; number < count; ++number) {
    look();
    if (number % 8 === 0) await tick();
    look();
    yield { number, payload: new Uint8Array(2000) };
  }
}
/** Cleans up like a file reader when its consumer stops. */
export function* unending(left: () => unknown) {
  try {
    for (let number = 0; ; ++number) yield { number, payload: new Uint8Array(2000) };
  } finally {
    left();
  }
}
const looking =
  (look: Look): Interceptor =>
  (next) =>
  async (request) => {
    look();
    const response = await next(request);
    return look(response);
  };
const callback = (options: (look: Look) => CallOptions): Site => ({
  sees: 'bob',
  bob: (look, { echo }) => echo.echo({ text: 'with metadata' }, options(look)),
});
let faults = 0;
const failing: Site = {
  handlers: () => ({
    behave: () => {
      // Errors with the same text are logged only once.
      throw new Error(`on purpose, ${++faults}`);
    },
  }),
};
/** Calls that fail on purpose. */
const behave = (_: Look, { echo }: Calls, options?: CallOptions) =>
  echo.behave({}, options).catch(() => undefined);
const signalled =
  (listen: (signal: AbortSignal, look: Look) => void): Site['handlers'] =>
  (look) => ({
    behave: (_request, { signal }) =>
      new Promise((resolve) => {
        listen(signal, look);
        signal.addEventListener('abort', () => resolve({}));
      }),
  });

export const sites: Readonly<Record<string, Site>> = {
  'a handler': { handlers: (look) => ({ echo: (request) => look(request) }) },
  'a handler that waits': {
    handlers: (look) => ({
      echo: async (request) => {
        look();
        await tick();
        return look(request);
      },
    }),
  },
  'a handler that gives a stream': {
    streams: (look) => ({ count: () => numbers(look) }),
    bob: (_, { streams }) => drain(streams.count({})),
  },
  'a handler that takes a stream': {
    streams: (look) => ({
      sum: async (items) => {
        look();
        for await (const _ of items) look();
        return look({});
      },
    }),
    bob: (_, { streams }) => streams.sum(numbers((then) => then as never)),
  },
  'a handler of two streams': {
    streams: (look) => ({
      echo: async function* (items) {
        look();
        for await (const item of items) yield look(item);
      },
    }),
    bob: (_, { streams }) => drain(streams.echo(numbers((then) => then as never))),
  },
  'an interceptor of the server': { use: looking },
  authenticate: {
    server: (look) => ({ authenticate: () => look('carol') }),
    bob: async (_, _calls, address) => {
      const channel = createChannel(address);
      await createClient(EchoDefinition, channel).echo({});
      await channel.close();
    },
  },
  authorize: { server: (look) => ({ authorize: () => look(true) }) },
  onDenied: {
    server: (look) => ({ authorize: (_, method) => !method.endsWith('Behave'), onDenied: () => look() }),
    bob: (look, calls) => behave(look, calls),
  },
  quotas: {
    server: (look) => ({ quotas: () => look({ sessionsMax: 100 }) }),
    bob: async (_, _calls, address) => {
      const channel = createChannel(address);
      await createClient(EchoDefinition, channel).echo({});
      await channel.close();
    },
  },
  onHandlerError: {
    ...failing,
    server: (look) => ({ onHandlerError: () => look() }),
    bob: (look, calls) => behave(look, calls),
  },
  onSession: {
    server: (look) => ({ onSession: () => look() }),
    bob: async (_, _calls, address) => {
      const channel = createChannel(address);
      await createClient(EchoDefinition, channel).echo({});
      await channel.close();
    },
  },
  'log of a server': {
    ...failing,
    server: (look) => ({ log: () => look() }),
    bob: (look, calls) => behave(look, calls),
  },
  'a listener of onShutdown': {
    watch: (look, _channel, server) => server.onShutdown(() => look()),
    after: (server) => server.shutdown({ graceMs: 0 }),
  },
  'a getter of a response': {
    handlers: (look) => ({
      echo: () => ({
        get text() {
          return look('text');
        },
      }),
    }),
  },
  'a listener of a signal, when the call is given up': {
    handlers: signalled((signal, look) => signal.addEventListener('abort', () => look())),
    bob: (look, calls) => behave(look, calls, { signal: AbortSignal.timeout(20) }),
  },
  'a listener of a signal, when its time is up': {
    handlers: signalled((signal, look) => signal.addEventListener('abort', () => look())),
    bob: (look, calls) => behave(look, calls, { timeoutMs: 20 }),
  },
  'onabort of a signal': {
    handlers: signalled((signal, look) => {
      signal.onabort = () => look();
    }),
    bob: (look, calls) => behave(look, calls, { timeoutMs: 20 }),
  },
  'an interceptor of a client': {
    sees: 'bob',
    alone: true,
    channel: (look) => ({ interceptors: [looking(look)] }),
  },
  onHeader: callback((look) => ({ onHeader: () => look() })),
  onTrailer: callback((look) => ({ onTrailer: () => look() })),
  'onTrailer with retries': callback((look) => ({ onTrailer: () => look(), retry: {} })),
  'onTrailer with hedging': callback((look) => ({ onTrailer: () => look(), hedging: { delayMs: 0 } })),
  'onHeader of a stream': {
    sees: 'bob',
    bob: (look, { streams }) => drain(streams.count({}, { onHeader: () => look() })),
  },
  'onTrailer of a stream': {
    sees: 'bob',
    bob: (look, { streams }) => drain(streams.count({}, { onTrailer: () => look() })),
  },
  'the requests of a stream': {
    sees: 'bob',
    bob: (look, { streams }) => streams.sum(numbers(look)),
  },
  'the end of the requests of a stream, which the server has brought': {
    sees: 'bob',
    streams: () => ({ sum: () => ({}) }),
    bob: (look, { streams }) => streams.sum(unending(look)),
  },
  'the requests of a stream that gives one, too': {
    sees: 'bob',
    bob: (look, { streams }) => drain(streams.echo(numbers(look))),
  },
  'credentials of calls': {
    // Calls share the result, so the function belongs to no caller.
    channel: (look) => ({ credentials: { call: () => look({ metadata: { token: 't' } }) } }),
  },
  'onHeader of a call that has waited for its connection': {
    sees: 'bob',
    bob: async (look, _calls, address) => {
      const channel = user.run('alice', () => createChannel(address));
      const echo = createClient(EchoDefinition, channel);
      await Promise.all([
        user.run('alice', () => echo.echo({})),
        echo.echo({}, { onHeader: () => look(), onTrailer: () => look() }),
      ]);
      await user.run('alice', () => channel.close());
    },
  },
  "a listener of channel.on('state')": {
    watch: (look, channel) => void channel.on('state', () => look()),
    after: (_server, channel) => channel.close(),
  },
  'what a probe of health asks': {
    bob: async (look) => {
      const http = await user.run('alice', () => serveHealthHttp({ statusOf: () => look('SERVING') }));
      await fetch(`http://${http.address}/readyz`);
      await http.close();
    },
  },
};
