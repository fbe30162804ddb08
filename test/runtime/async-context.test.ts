/**
 * Tests AsyncLocalStorage: the context in which each function of an application runs. "alice" creates all
 * objects that many calls share (server, channels, the connection, the first call, timers), and then "bob"
 * calls. A function of bob's call must see bob, and a function that belongs to no call must see no store. No
 * function may see alice. Node has two implementations: Node 20 and 22 attach the store to resources, and
 * Node 24 and later to frames.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import v8 from 'node:v8';
import vm from 'node:vm';
import {
  createChannel,
  createClient,
  createInProcessChannel,
  createServer,
  type Handlers,
  type Server,
  type ServerOptions,
} from 'rdma-rpc';
import { peersOf, serveReverse } from 'rdma-rpc/reverse';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import {
  type Calls,
  clients,
  drain,
  type Look,
  numbers,
  type Site,
  sites,
  tick,
  unending,
  user,
} from './context-sites.ts';
import { sitesOfStreams } from './context-sites-of-streams.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { socketPath } from './world.ts';

let closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.reverse()) await close();
  closing = [];
});

async function open(site: Site, look: Look, way: 'connection' | 'in process') {
  const handlers: Partial<Handlers<typeof EchoDefinition>> = {
    echo: (request, { header, trailer }) => {
      header.set('header', 'h');
      trailer.set('trailer', 't');
      return request;
    },
    behave: () => ({}),
    ...site.handlers?.(look),
  };
  const streams: Partial<Handlers<typeof StreamsDefinition>> = {
    count: async function* (_, { header, trailer }) {
      header.set('header', 'h');
      yield { number: 1 };
      trailer.set('trailer', 't');
    },
    sum: async (items) => drain(items).then(() => ({})),
    echo: async function* (items) {
      yield* items;
    },
    ...site.streams?.(look),
  };
  const fill = (server: Server): Server => {
    if (site.use !== undefined) server.use(site.use(look));
    const scope = site.scope === undefined ? server : server.scope(site.scope(look));
    scope.add(EchoDefinition, handlers);
    return server.add(StreamsDefinition, streams);
  };
  const options = {
    onHandlerError: site.server === undefined ? () => undefined : undefined,
    ...site.server?.(look),
  } as ServerOptions;
  const server = fill(createServer(options));
  const address = await server.listen(`unix:${socketPath()}`);
  const channel =
    way === 'connection'
      ? createChannel(address, site.channel?.(look))
      : createInProcessChannel((each) => void fill(each as Server), {
          ...(options as object),
          ...site.channel?.(look),
        });
  closing.push(
    () => server.shutdown({ graceMs: 0 }),
    () => channel.close(),
  );
  return { server, channel, address };
}

describe.each(['connection', 'in process'] as const)(
  'the store in each function, over a channel (%s) of another caller',
  (way) => {
    test.each(Object.entries({ ...sites, ...sitesOfStreams }))('%s', async (_, site) => {
      const seen: (string | undefined)[] = [];
      let bobs = false;
      const look: Look = (then) => {
        if (bobs) seen.push(user.getStore());
        return then as never;
      };
      const { server, channel, address } = await user.run('alice', async () => {
        const opened = await open(site, look, way);
        site.watch?.(look, opened.channel, opened.server);
        const { echo, streams } = clients(opened.channel);
        await echo.echo({});
        await drain(streams.count({}));
        await echo.behave({}, { timeoutMs: 5 }).catch(() => undefined);
        return opened;
      });
      bobs = true;
      const calls = clients(channel);
      const bob = site.bob ?? ((_look: Look, { echo }: Calls) => echo.echo({}));
      // Another call runs in the same event-loop iteration; its store must not be visible either.
      await Promise.all([
        user.run('bob', () => bob(look, calls, address)),
        site.alone === true ? undefined : user.run('alice', () => drain(calls.streams.count({}))),
      ]);
      await user.run('bob', () => site.after?.(server, channel));
      await tick();
      const whom = [...new Set(seen.map((each) => each ?? 'nobody'))];
      if (site.sees === 'bob or nobody') {
        expect(whom.length).toBeGreaterThan(0);
        expect(whom).not.toContain('alice');
      } else expect(whom).toEqual([site.sees ?? 'nobody']);
    });
  },
);

describe('an entered store does not leave its context', () => {
  test.each(['sync', 'async'] as const)('by a handler (%s), with enterWith()', async (kind) => {
    const seen: (string | undefined)[] = [];
    const server = createServer().add(EchoDefinition, {
      echo: ({ number }) => {
        seen.push(user.getStore());
        user.enterWith(`of ${number}`);
        const own = () => ({ text: user.getStore() });
        return kind === 'sync' ? own() : tick().then(own);
      },
    });
    closing.push(() => server.shutdown({ graceMs: 0 }));
    const channel = createChannel(await server.listen(`unix:${socketPath()}`));
    closing.push(() => channel.close());
    const { echo } = createClient(EchoDefinition, channel);
    const texts = await Promise.all(Array.from({ length: 64 }, (_, number) => echo({ number })));
    expect(texts.map(({ text }) => text)).toEqual(texts.map((_, number) => `of ${number}`));
    expect(new Set(seen)).toEqual(new Set([undefined]));
  });

  test('by an interceptor of the server, for handlers of all four kinds', async () => {
    const seen: Record<string, Set<string | undefined>> = {};
    const look = (kind: string): void => {
      seen[kind] ??= new Set();
      seen[kind].add(user.getStore());
    };
    const server = createServer()
      .use((next) => (request) => user.run('carol', () => next(request)))
      .add(EchoDefinition, {
        echo: async (request) => {
          look('unary');
          await tick();
          look('unary');
          return request;
        },
      })
      .add(StreamsDefinition, {
        count: async function* () {
          for await (const item of numbers(() => look('gives') as never)) yield item;
        },
        sum: async (items) => {
          for await (const _ of items) look('takes');
          return {};
        },
        echo: async function* (items) {
          for await (const item of items) {
            look('both');
            yield item;
          }
        },
      });
    closing.push(() => server.shutdown({ graceMs: 0 }));
    const channel = createChannel(await server.listen(`unix:${socketPath()}`));
    closing.push(() => channel.close());
    const { echo, streams } = clients(channel);
    const none = ((then: unknown) => then) as Look;
    await user.run('alice', () =>
      Promise.all([
        echo.echo({}),
        drain(streams.count({})),
        streams.sum(numbers(none)),
        drain(streams.echo(numbers(none))),
      ]),
    );
    const carol = new Set(['carol']);
    expect(seen).toEqual({ unary: carol, gives: carol, takes: carol, both: carol });
  });
});

test('a store entered by an interceptor of the server is current when the caller of a stream leaves it early', async () => {
  const seen: (string | undefined)[] = [];
  const server = createServer()
    .use((next) => (request) => user.run('carol', () => next(request)))
    .add(StreamsDefinition, {
      count: async function* () {
        yield* unending(() => seen.push(user.getStore()));
      },
    });
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const channel = createChannel(await server.listen(`unix:${socketPath()}`));
  closing.push(() => channel.close());
  for await (const _ of clients(channel).streams.count({})) break;
  await vi.waitFor(() => expect(seen).toEqual(['carol']));
});

test('a resolver and credentials of sessions are called in the root context', async () => {
  const seen = new Set<string | undefined>();
  const look = <T>(then: T): T => {
    seen.add(user.getStore());
    return then;
  };
  const server = createServer({ authenticate: () => 'carol' }).add(EchoDefinition, {
    echo: (request) => request,
  });
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const address = await server.listen(`unix:${socketPath()}`);
  let change = (): void => undefined;
  const channel = createChannel(
    {
      resolve: async () => look([address]),
      watch: (changed) => {
        change = changed;
        return () => look(undefined);
      },
    },
    { credentials: { session: () => look({ metadata: { token: 't' } }) }, log: () => look(undefined) },
  );
  closing.push(() => channel.close());
  await user.run('alice', () => createClient(EchoDefinition, channel).echo({}));
  user.run('bob', () => change());
  await tick();
  await user.run('bob', () => channel.close());
  expect(seen).toEqual(new Set([undefined]));
});

describe('handlers of calls from the server', () => {
  /** Returns a client for the service `echo` that a channel of alice's serves. */
  async function reversed(echo: Handlers<typeof EchoDefinition>['echo']) {
    const server = createServer();
    const peers = peersOf(server);
    closing.push(() => server.shutdown({ graceMs: 0 }));
    const channel = createChannel(await server.listen(`unix:${socketPath()}`));
    closing.push(() => channel.close());
    const reverse = user.run('alice', () => serveReverse(channel).add(EchoDefinition, { echo }));
    closing.push(() => reverse.close());
    await reverse.ready;
    await vi.waitFor(() => expect(peers.all).toHaveLength(1));
    return peers.client(EchoDefinition, peers.all[0]!);
  }

  test('run in the root context', async () => {
    const seen = new Set<string | undefined>();
    const client = await reversed(async (request) => {
      seen.add(user.getStore());
      await tick();
      seen.add(user.getStore());
      return request;
    });
    await user.run('bob', () => client.echo({}));
    expect(seen).toEqual(new Set([undefined]));
  });

  test('run in the root context when the one before has entered a store', async () => {
    const seen: (string | undefined)[] = [];
    const client = await reversed(({ number }) => {
      seen.push(user.getStore());
      user.enterWith(`of ${number}`);
      return { text: user.getStore() };
    });
    const texts = await Promise.all(Array.from({ length: 16 }, (_, number) => client.echo({ number })));
    expect(texts.map(({ text }) => text)).toEqual(texts.map((_, number) => `of ${number}`));
    expect(new Set(seen)).toEqual(new Set([undefined]));
  });
});

test('a request that waited for its connection is encoded in the root context or its own', async () => {
  const seen = new Set<string | undefined>();
  const server = createServer().add(EchoDefinition, { echo: (request) => request });
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const channel = createChannel(await server.listen(`unix:${socketPath()}`));
  closing.push(() => channel.close());
  const { echo } = createClient(EchoDefinition, channel);
  const first = user.run('alice', () => echo({}));
  const second = user.run('bob', () =>
    echo({
      get text() {
        seen.add(user.getStore());
        return 'text';
      },
    }),
  );
  await Promise.all([first, second]);
  expect(seen.has('alice')).toBe(false);
  expect(seen.size).toBeGreaterThan(0);
});

describe('the store of a call is not kept when the call is over', () => {
  v8.setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc') as () => void;

  test.each([
    ['although its channel and server live on', false],
    ['though others keep its channel busy all the time', true],
  ])('%s', async (_, busy) => {
    const stores = new AsyncLocalStorage<object>();
    const kept: WeakRef<object>[] = [];
    const opened = async () => {
      const server = createServer().add(EchoDefinition, {
        echo: (request) => request,
        behave: () => new Promise(() => undefined),
      });
      const channel = createChannel(await server.listen(`unix:${socketPath()}`));
      closing.push(
        () => server.shutdown({ graceMs: 0 }),
        () => channel.close(),
      );
      return createClient(EchoDefinition, channel);
    };
    let client: Awaited<ReturnType<typeof opened>> | undefined;
    const one = async () => {
      const store = {};
      kept.push(new WeakRef(store));
      await stores.run(store, async () => {
        client ??= await opened();
        await client.echo({}, { onTrailer: () => undefined, timeoutMs: 1000 });
      });
    };
    await one();
    if (busy) client!.behave({}).catch(() => undefined);
    await one();
    await one();
    await vi.waitFor(
      () => {
        gc();
        expect(kept.map((each) => each.deref() === undefined)).toEqual([true, true, true]);
      },
      { timeout: 20_000, interval: 100 },
    );
  });
});
