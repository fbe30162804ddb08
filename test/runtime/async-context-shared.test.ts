/**
 * Tests AsyncLocalStorage in functions that serve many calls, apart from channels and servers: TLS, clients
 * that serve, and calls over grpc-js. "alice" creates these objects and "bob" uses them; see
 * async-context.test.ts.
 */
import { credentials, Client as GrpcClient, Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';
import {
  createChannel,
  createClient,
  createServer,
  type Interceptor,
  Metadata,
  RpcError,
  Status,
} from 'rdma-rpc';
import { createGrpcClient } from 'rdma-rpc/grpc/client';
import { toGrpcJsHandlers } from 'rdma-rpc/grpc/server';
import { peersOf, serveReverse } from 'rdma-rpc/reverse';
import { createWorkload } from 'rdma-rpc/spiffe';
import { afterEach, expect, test, vi } from 'vitest';
import { Authority, pems } from '../security/certificates.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { drain, numbers, tick, unending, user } from './context-sites.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { socketPath } from './world.ts';

let closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.reverse()) await close();
  closing = [];
});

/** The stores that were current when a function ran, by the function's name. */
class Seen {
  readonly #by = new Map<string, Set<string>>();
  look<T>(name: string, then?: T): T {
    const users = this.#by.get(name) ?? new Set();
    this.#by.set(name, users.add(user.getStore() ?? 'nobody'));
    return then as T;
  }
  get all(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries([...this.#by].map(([name, users]) => [name, [...users]]));
  }
}

test('functions called by TLS run in the root context', async () => {
  const seen = new Seen();
  const authority = new Authority();
  const { ca } = authority;
  const cert = authority.issue({ names: ['localhost'], addresses: ['127.0.0.1'], subject: 'server' });
  const web = authority.issue({ uris: ['spiffe://example.org/web'] });
  const { server, address } = await user.run('alice', async () => {
    const made = createServer({
      tls: () =>
        seen.look('tls of the server', {
          ...pems(cert),
          ca,
          checkClientIdentity: () => seen.look('checkClientIdentity', undefined),
        }),
      log: () => seen.look('log of the server'),
    }).add(EchoDefinition, { echo: (request) => request });
    return { server: made, address: await made.listen('127.0.0.1:0') };
  });
  closing.push(() => server.shutdown({ graceMs: 0 }));
  for (const who of ['alice', 'bob']) {
    const channel = user.run('alice', () =>
      createChannel(address, {
        fabric: 'tcp',
        tls: () =>
          seen.look('tls of the channel', {
            ca,
            ...pems(web),
            checkServerIdentity: () => seen.look('checkServerIdentity', undefined),
          }),
      }),
    );
    closing.push(() => channel.close());
    await user.run(who, () => createClient(EchoDefinition, channel).echo({}));
  }
  const nobody = ['nobody'];
  expect(seen.all).toEqual({
    'log of the server': nobody,
    'tls of the server': nobody,
    checkClientIdentity: nobody,
    'tls of the channel': nobody,
    checkServerIdentity: nobody,
  });
});

test('functions around calls of a server to its clients', async () => {
  const seen = new Seen();
  const looking =
    (name: string): Interceptor =>
    (next) =>
    async (request) => {
      seen.look(name);
      return seen.look(name, await next(request));
    };
  const server = user.run('alice', () => createServer());
  const peers = user.run('alice', () =>
    peersOf(server)
      .on('peer', () => seen.look('a listener of peer'))
      .once('peer', () => seen.look('one that listens once'))
      .on('gone', () => seen.look('a listener of gone')),
  );
  const address = await server.listen(`unix:${socketPath()}`);
  const channel = user.run('alice', () => createChannel(address));
  closing.push(() => channel.close());
  const reverse = user.run('alice', () =>
    serveReverse(channel, {
      interceptors: [looking('an interceptor of the one that serves')],
      onHandlerError: () => seen.look('onHandlerError'),
    }).add(EchoDefinition, {
      echo: (request, { header, trailer }) => {
        header.set('h', '1');
        trailer.set('t', '1');
        return request;
      },
      behave: () => {
        throw new Error('on purpose');
      },
    }),
  );
  await reverse.ready;
  await vi.waitFor(() => expect(peers.all).toHaveLength(1));
  const client = user.run('alice', () =>
    peers.client(EchoDefinition, peers.all[0]!, {
      interceptors: [looking('an interceptor of the one that calls')],
    }),
  );
  const options = {
    onHeader: () => seen.look('onHeader'),
    onTrailer: () => seen.look('onTrailer'),
  };
  await Promise.all([
    user.run('bob', () => client.echo({}, options)),
    user.run('bob', () => client.behave({}).catch(() => undefined)),
  ]);
  // The server may end its connections before shutdown() returns. The connections then end in the context of
  // the caller of shutdown().
  await user.run('carol', () => server.shutdown({ graceMs: 0 }));
  await vi.waitFor(() => expect(seen.all).toHaveProperty('a listener of gone'));
  expect(seen.all).toEqual({
    'a listener of peer': ['nobody'],
    'one that listens once': ['nobody'],
    'an interceptor of the one that calls': ['bob'],
    'an interceptor of the one that serves': ['nobody'],
    onHeader: ['bob'],
    onTrailer: ['bob'],
    onHandlerError: ['nobody'],
    'a listener of gone': ['nobody'],
  });
});

test("functions of a call over grpc-js run in its caller's context, even over another caller's connection", async () => {
  const seen = new Seen();
  const metadata = { header: new Metadata({ h: '1' }), trailer: new Metadata({ t: '1' }) };
  const server = new GrpcServer();
  const streams = toGrpcJsHandlers(StreamsDefinition, {
    count: async function* (_, { header, trailer }) {
      for (const [key, value] of metadata.header) header.set(key, value);
      for (const [key, value] of metadata.trailer) trailer.set(key, value);
      yield { number: 1 };
    },
    sum: async (items) => drain(items).then(() => ({})),
    hold: () => new Promise<never>(() => undefined),
    behave: () => {
      throw new RpcError(Status.NOT_FOUND, 'on purpose', { trailer: metadata.trailer });
    },
  });
  server.addService(StreamsDefinition.methods, streams);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  closing.push(() => server.forceShutdown());
  const grpc = user.run('alice', () => new GrpcClient(`127.0.0.1:${port}`, credentials.createInsecure()));
  closing.push(() => grpc.close());
  const client = user.run('alice', () => createGrpcClient(StreamsDefinition, grpc));
  const of = (name: string) => ({
    onHeader: () => seen.look(`onHeader ${name}`),
    onTrailer: () => seen.look(`onTrailer ${name}`),
  });
  const look = ((then?: unknown) => seen.look('requests', then)) as never;
  await Promise.all([
    user.run('alice', () => drain(client.count({}))),
    user.run('bob', () => drain(client.count({}, of('of a stream')))),
    user.run('bob', () => drain(client.behave({}, of('of one that fails'))).catch(() => undefined)),
    user.run('bob', () => client.sum(numbers(look))),
    user.run('bob', () =>
      client
        .hold(
          unending(() => seen.look('the end of requests')),
          { timeoutMs: 50 },
        )
        .catch(() => undefined),
    ),
  ]);
  await vi.waitFor(() => expect(seen.all).toHaveProperty('the end of requests'));
  expect(seen.all).toEqual({
    'onHeader of a stream': ['bob'],
    'onTrailer of a stream': ['bob'],
    'onTrailer of one that fails': ['bob'],
    requests: ['bob'],
    'the end of requests': ['bob'],
  });
});

test('the log of an SPIFFE workload, which polls its agent, runs in the root context', async () => {
  const seen = new Seen();
  const workload = user.run('alice', () =>
    createWorkload({ endpoint: `unix:${socketPath()}`, log: () => seen.look('log') }),
  );
  closing.push(() => workload.close());
  await vi.waitFor(() => expect(seen.all).toEqual({ log: ['nobody'] }), { timeout: 10_000 });
  await tick();
});
