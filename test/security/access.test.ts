/**
 * Tests which clients may have a session, by their credentials, and which methods they may call:
 * `authenticate` and `authorize`.
 */
import { join } from 'node:path';
import {
  type CallOptions,
  type ChannelOptions,
  createChannel,
  createClient,
  createInProcessChannel,
  createServer,
  RpcError,
  type ServerOptions,
  Status,
  stats,
} from 'rdma-rpc';
import { addHealth, HealthDefinition } from 'rdma-rpc/health';
import { addReflection, ServerReflectionDefinition } from 'rdma-rpc/reflection';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { caught, until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { ends, reach as reached, serveWho as serve, unixAddress } from './ends.ts';

const own = `uid:${process.geteuid!()}`;

afterEach(() => void vi.useRealTimers());

const reach = (address: string, options?: ChannelOptions) => reached(address, options).client;

describe('authenticate', () => {
  test("is called once for each session, with the peer and the client's metadata", async () => {
    const asked: unknown[] = [];
    const { address } = await serve({
      authenticate: async (peer, metadata) => {
        asked.push([peer.identity, metadata.get('token')]);
        return `user:${String(metadata.get('token'))}`;
      },
      allow: { identity: 'user:abc' },
    });
    const client = reach(address, { credentials: { session: () => ({ metadata: { token: 'abc' } }) } });
    expect((await client.echo({})).text).toBe('user:abc');
    await client.echo({});
    expect(asked).toEqual([[own, 'abc']]);
    await until(() => ends.servers[0]!.sessions.length > 0);
    expect(ends.servers[0]!.sessions[0]).toMatchObject({ identity: 'user:abc', security: 'bound' });
  });

  test('that returns nothing does not change the peer', async () => {
    const { address } = await serve({ authenticate: () => undefined });
    expect((await reach(address).echo({})).text).toBe(own);
  });

  test.each<[string, () => unknown, number, RegExp]>([
    [
      'throws',
      () => {
        throw new Error('the vault is at 10.0.0.1');
      },
      Status.UNAUTHENTICATED,
      /does not accept this client/,
    ],
    [
      'rejects',
      () => Promise.reject(new Error('the vault is at 10.0.0.1')),
      Status.UNAUTHENTICATED,
      /does not accept this client/,
    ],
    ['returns what is no text', () => ({}), Status.UNAUTHENTICATED, /does not accept this client/],
    [
      'says so itself',
      () => {
        throw new RpcError(Status.PERMISSION_DENIED, 'not on Sundays');
      },
      Status.PERMISSION_DENIED,
      /not on Sundays/,
    ],
    [
      'hangs',
      () => new Promise(() => undefined),
      Status.RESOURCE_EXHAUSTED,
      /`authenticate` of the server has not answered within 2000 ms \(option handshakeTimeoutMs/,
    ],
  ])('that %s costs that session only, and no queue pair', async (how, bad, code, told) => {
    let good = false;
    const authenticate = (() => (good ? 'alice' : bad())) as ServerOptions['authenticate'];
    const { server, lines, address } = await serve({
      authenticate: authenticate!,
      handshakeTimeoutMs: how === 'hangs' ? 2000 : 60_000,
    });
    const { queuePairs } = stats();
    const error = await caught(reach(address).echo({}));
    expect([error.code, error.processed]).toEqual([code, 'no']);
    expect(error.message).toMatch(told);
    expect(error.message).not.toMatch(/vault/);
    expect([server.sessionCount, stats().queuePairs]).toEqual([0, queuePairs]);
    await until(() => lines.length > 0);
    good = true;
    expect((await reach(address).echo({})).text).toBe('alice');
  });

  test('a client that disconnects before the answer gets no session', async () => {
    let answer: (identity: string) => void = () => undefined;
    const { server, lines, address } = await serve({
      authenticate: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    });
    const channel = createChannel(address);
    const ready = caught(channel.ready());
    await until(() => answer.length === 1);
    await channel.close();
    await ready;
    answer('late');
    await until(() => lines.length > 0);
    expect(server.sessionCount).toBe(0);
  });
});

test.each(['spiffe://example.org/*', '*'])('identities are compared whole: %s', (identity) => {
  const whole =
    /^createServer: allow: identity: '.*\*': identities are compared as a whole, \* is not a pattern$/;
  expect(() => createServer({ allow: { identity: ['a', identity] } })).toThrow(whole);
});

describe('authorize', () => {
  const echo = 'test.echo.Echo/Echo';
  test.each<[string, NonNullable<ServerOptions['authorize']>, boolean]>([
    ['a method, by identity', { [echo]: ['uid:x', own] }, true],
    ['a service', { 'test.echo.Echo/*': own }, true],
    ['everything, for everybody', { '*': '*' }, true],
    ['another identity', { [echo]: 'uid:x' }, false],
    ['another method', { 'test.echo.Echo/Behave': own }, false],
    ['the closest key alone', { [echo]: [], '*': '*' }, false],
    ['nothing', {}, false],
    ['a function', (peer, method) => peer.identity === own && method === echo, true],
    ['a function that says no', () => false, false],
    ['one that says nothing', () => undefined as never, false],
    ['one that says it later', async () => true, true],
    ['one that denies later', async () => 1 as never, false],
  ])('by %s', async (_, authorize, may) => {
    const { address } = await serve({ authorize });
    const call = reach(address).echo({});
    if (may) expect((await call).text).toBe(own);
    else {
      expect(await caught(call)).toMatchObject({
        code: Status.PERMISSION_DENIED,
        rawMessage: `${echo}: this client is not allowed to call this method (option authorize of the server)`,
      });
    }
  });

  test('that throws fails only that call, and its caller does not get the error', async () => {
    let bad = true;
    const errors: unknown[] = [];
    const { address } = await serve({
      authorize: () => {
        if (bad) throw new Error('the vault is at 10.0.0.1');
        return true;
      },
      onHandlerError: (error) => errors.push(error),
    });
    const client = reach(address);
    const error = await caught(client.echo({}));
    expect(error.code).toBe(Status.INTERNAL);
    expect(error.message).toMatch(/: authorize failed; the server's log may say why$/);
    expect(errors).toMatchObject([
      {
        message: 'authorize has failed: the vault is at 10.0.0.1',
        cause: { message: 'the vault is at 10.0.0.1' },
      },
    ]);
    bad = false;
    await client.echo({});
  });

  test.each<[string, NonNullable<ServerOptions['authorize']>]>([
    [
      'throws',
      () => {
        throw new Error('no vault');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no vault'))],
  ])('that %s is named in the log, which does not take it for the handler', async (_, authorize) => {
    const lines: string[] = [];
    const denied: unknown[] = [];
    const log = (line: string) => lines.push(line);
    const { address } = await serve({ authorize, log, onDenied: (call) => denied.push(call) });
    expect(await caught(reach(address).echo({}))).toMatchObject({ code: Status.INTERNAL });
    const text = lines.join();
    expect(text).toMatch(/Echo\/Echo: authorize failed, the handler has not run.*no vault/s);
    expect(text).not.toMatch(/the handler failed/);
    expect(denied).toEqual([]);
  });

  test.each<[string, (call: AbortController) => void, CallOptions, number]>([
    // The time is enough for the request to arrive, even on a busy machine.
    ['its time is over', () => undefined, { timeoutMs: 1000 }, Status.DEADLINE_EXCEEDED],
    ['its caller has given it up', (call) => call.abort(), {}, Status.CANCELLED],
  ])('that answers late: the handler does not run when %s', async (_, end, options, code) => {
    const answers: ((allowed: boolean) => void)[] = [];
    const ran: string[] = [];
    const server = createServer({
      authorize: () => new Promise((resolve) => answers.push(resolve)),
      log: () => undefined,
    });
    server.add(EchoDefinition, {
      echo: ({ text }) => {
        ran.push(text);
        return {};
      },
    });
    ends.servers.push(server);
    const client = reach(await server.listen(unixAddress()));
    const connected = client.echo({ text: 'first' });
    await until(() => answers.length === 1);
    answers.pop()!(true);
    await connected;
    const call = new AbortController();
    const late = caught(client.echo({ text: 'late' }, { signal: call.signal, ...options }));
    await until(() => answers.length === 1);
    end(call);
    expect((await late).code).toBe(code);
    // This call follows on the same connection, so the server has noticed that the first call has ended.
    const next = client.echo({ text: 'next' });
    await until(() => answers.length === 2);
    for (const answer of answers) answer(true);
    await next;
    expect(ran).toEqual(['first', 'next']);
  });

  test('covers streams of each kind', async () => {
    let runs = 0;
    const channel = createInProcessChannel(
      (server) =>
        server.add(StreamsDefinition, {
          async *count() {
            ++runs;
            yield { number: 1 };
          },
          async sum() {
            ++runs;
            return {};
          },
        }),
      { authorize: { 'test.stream.Streams/Count': own } },
    );
    ends.channels.push(channel);
    const client = createClient(StreamsDefinition, channel);
    const numbers: number[] = [];
    for await (const { number } of client.count({ count: 1 })) numbers.push(number);
    expect(numbers).toEqual([1]);
    expect((await caught(client.sum([{ number: 1 }]))).code).toBe(Status.PERMISSION_DENIED);
    expect(runs).toBe(1);
  });

  test('a table that cannot work is refused at once', () => {
    expect(() => createServer({ authorize: { 'test.echo.Echo': own } })).toThrow(
      /the key "test.echo.Echo" must be 'package.Service/,
    );
    expect(() => createServer({ authorize: { '*': 5 as never } })).toThrow(/must be an identity or a list/);
    expect(() => createServer({ authorize: { '*': ['*', 'spiffe://example.org/*'] } })).toThrow(
      /^createServer: authorize: \*: 'spiffe:.+\*': identities are compared as a whole, \* is not a pattern$/,
    );
    // These values have no names of their own, so they would silently admit no client.
    for (const given of [new Map([['*', own]]), new Set(['*']), [own]])
      expect(() => createServer({ authorize: given as never })).toThrow(
        /authorize: must be an object with names, such as { name: … }, or a function, but is of type (Map|Set|Array)/,
      );
    expect(() => createServer({ authorize: { 'test.echo.Echo/Ecko': own } }).add(EchoDefinition, {})).toThrow(
      /there is no method test.echo.Echo\/Ecko; did you mean test.echo.Echo\/Echo/,
    );
  });
});

test.each<[string, Record<string, string>, boolean, boolean]>([
  ['nobody', {}, false, false],
  ['probes, health alone', { 'grpc.health.v1.Health/*': own }, true, false],
  [
    'everybody, but reflection',
    { '*': '*', 'grpc.reflection.v1.ServerReflection/*': 'user:admin' },
    true,
    false,
  ],
  ['everybody', { '*': '*' }, true, true],
])('health and reflection are services as others: open to %s', async (_, authorize, health, reflection) => {
  const server = createServer({ authorize, log: () => undefined });
  addHealth(server);
  addReflection(server);
  ends.servers.push(server);
  const channel = createChannel(await server.listen(unixAddress()));
  ends.channels.push(channel);
  const probe = createClient(HealthDefinition, channel);
  const asked = createClient(ServerReflectionDefinition, channel);
  const watch = async () => {
    for await (const { status } of probe.watch({})) return status;
    return undefined;
  };
  const list = async () => {
    for await (const answer of asked.serverReflectionInfo([
      { messageRequest: { case: 'listServices', value: '' } },
    ]))
      return answer.messageResponse?.case;
    return undefined;
  };
  const ended = await Promise.allSettled([probe.check({}), watch(), list()]);
  expect(ended.map(({ status }) => status === 'fulfilled')).toEqual([health, health, reflection]);
  for (const each of ended)
    if (each.status === 'rejected') expect(each.reason).toMatchObject({ code: Status.PERMISSION_DENIED });
});

test('a table with services that the server does not have causes a warning when the server listens', async () => {
  const { lines, server } = await serve({
    authorize: { 'test.echo.Ehco/*': own, 'test.echo.Echo/*': own, 'shop.v1.Basket/Pay': own, '*': own },
  });
  const warnings = [
    'authorize: there is no service test.echo.Ehco on this server; did you mean test.echo.Echo?',
    'authorize: there is no service shop.v1.Basket on this server; add it before listen(), or remove it from the table',
  ];
  expect(lines).toEqual(warnings);
  await server.listen(`unix:${join(ends.folder, 'other')}`);
  expect(lines).toEqual(warnings);
});
