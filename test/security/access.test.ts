/** Who may have a session by what it shows, and who may call what: `authenticate`, `authorize`, and the credentials of a channel. */
import { join } from 'node:path';
import { inspect } from 'node:util';
import {
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
import { HealthDefinition, healthOf } from 'rdma-rpc/health';
import { addReflection, ServerReflectionDefinition } from 'rdma-rpc/reflection';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { KeptCredentials } from '../../runtime/client/credentials.ts';
import { caught, until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { Authority } from './certificates.ts';
import { ends, reach as reached, unixAddress } from './ends.ts';

const own = `uid:${process.geteuid!()}`;
const authority = new Authority();
const { ca } = authority;
const { cert, key } = authority.issue({ addresses: ['127.0.0.1'] });

afterEach(() => void vi.useRealTimers());

async function serve(options: ServerOptions, address = unixAddress()) {
  const lines: string[] = [];
  const server = createServer({ log: (line) => lines.push(line), ...options });
  server.add(EchoDefinition, {
    echo: (_, { peer }) => ({ text: peer.identity ?? 'nobody' }),
    behave: (_, { metadata }) => ({ text: metadata.getAll('token').join() }),
  });
  ends.servers.push(server);
  return { server, lines, address: await server.listen(address) };
}
const reach = (address: string, options?: ChannelOptions) => reached(address, options).client;

describe('authenticate', () => {
  test('is asked once for each session, with what is known and what the client shows', async () => {
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
    expect(ends.servers[0]!.sessions[0]).toMatchObject({ identity: 'user:abc', security: 'bound' });
  });

  test('that returns nothing leaves the peer who it is', async () => {
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
    const authenticate = (() => (good ? 'somebody' : bad())) as ServerOptions['authenticate'];
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
    expect((await reach(address).echo({})).text).toBe('somebody');
  });

  test('a client that goes meanwhile has no session when the answer comes', async () => {
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
    /^createServer: allow: identity: '.*\*': identities are compared whole, without placeholders$/;
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
        rawMessage: `${echo}: this client may not call it (option authorize of the server)`,
      });
    }
  });

  test('that throws costs that call only, and its caller learns nothing', async () => {
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

  test('that hangs is not waited for for ever, and the handler does not run late', async () => {
    const { address } = await serve({ authorize: () => new Promise(() => undefined) });
    const error = await caught(reach(address).echo({}, { timeoutMs: 50 }));
    expect(error.code).toBe(Status.DEADLINE_EXCEEDED);
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

  test('a table that cannot be meant is found when it is given', () => {
    expect(() => createServer({ authorize: { 'test.echo.Echo': own } })).toThrow(/"test.echo.Echo" is no/);
    expect(() => createServer({ authorize: { '*': 5 as never } })).toThrow(/takes an identity or a list/);
    expect(() => createServer({ authorize: { '*': ['*', 'spiffe://example.org/*'] } })).toThrow(
      /^createServer: authorize: \*: 'spiffe:.+\*': identities are compared whole, without placeholders$/,
    );
    // They have no names of their own, and would let nobody in without a word.
    for (const given of [new Map([['*', own]]), new Set(['*']), [own]])
      expect(() => createServer({ authorize: given as never })).toThrow(
        /authorize: takes an object with names, such as { name: … }, or a function, and this is (Map|Set|Array)/,
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
  healthOf(server);
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

test('a table that names services which the server does not have: it warns when the server listens', async () => {
  const { lines, server } = await serve({
    authorize: { 'test.echo.Ehco/*': own, 'test.echo.Echo/*': own, 'shop.v1.Basket/Pay': own, '*': own },
  });
  const warnings = [
    'authorize: there is no service test.echo.Ehco on this server; did you mean test.echo.Echo?',
    'authorize: there is no service shop.v1.Basket on this server; add it before listen(), or take it out',
  ];
  expect(lines).toEqual(warnings);
  await server.listen(`unix:${join(ends.folder, 'other')}`);
  expect(lines).toEqual(warnings);
});

describe('credentials of a session', () => {
  const session = () => ({ metadata: { token: 'secret' } });
  test('are not sent where others can read them, unless that is allowed', async () => {
    const tokens: unknown[] = [];
    const { server, address } = await serve(
      { authenticate: (_, metadata) => void tokens.push(metadata.get('token')) as undefined },
      '127.0.0.1:0',
    );
    const error = await caught(reach(address, { credentials: { session } }).echo({}));
    expect(error.code).toBe(Status.FAILED_PRECONDITION);
    expect(error.message).toMatch(
      /not sent over a connection that others may read: use tls or a unix socket/,
    );
    expect([tokens, server.sessionCount]).toEqual([[], 0]);
    await reach(address, { credentials: { session, unsealed: true } }).echo({});
    expect(tokens).toEqual(['secret']);
    // Who is there was told over a wire that anybody could have written to.
    expect(server.sessions[0]!.security).toBe('none');
  });

  test('go over TLS', async () => {
    const { address } = await serve(
      { tls: { cert, key }, authenticate: (_, metadata) => `token:${String(metadata.get('token'))}` },
      '127.0.0.1:0',
    );
    const client = reach(address, { tls: { ca }, credentials: { session } });
    expect((await client.echo({})).text).toBe('token:secret');
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('no vault');
      },
      /cannot be had: no vault/,
    ],
    ['gives none', () => undefined as never, /cannot be had/],
    [
      'forgets `metadata`',
      () => ({ token: 'abc' }) as never,
      /as \{ metadata, expiresAtMs \}, and metadata is missing/,
    ],
    [
      'gives the token alone',
      () => ({ metadata: 'secret' }) as never,
      /metadata is an object of names and values, or a list of such pairs/,
    ],
    ['hangs', () => new Promise<never>(() => undefined), /no answer within 100 ms/],
  ])('from a function that %s: its calls fail in time', async (how, bad, told) => {
    const { address } = await serve({});
    const error = await caught(
      reach(address, {
        connectTimeoutMs: how === 'hangs' ? 100 : 60_000,
        credentials: { session: bad },
      }).echo({}),
    );
    expect([error.processed, error.message]).toEqual(['no', expect.stringMatching(told)]);
    expect(inspect(error)).not.toMatch(/secret/);
  });
});

describe('credentials of calls', () => {
  test('go with each of them, and are kept until shortly before they expire', async () => {
    let asked = 0;
    let expiresAtMs: number | undefined = Date.now() + 3_600_000;
    const call = async () => ({ metadata: { token: `t${++asked}` }, ...(expiresAtMs && { expiresAtMs }) });
    const { address } = await serve({});
    const client = reach(address, { credentials: { call } });
    const tokens = await Promise.all([client.behave({}), client.behave({})]);
    expect(tokens.map(({ text }) => text)).toEqual(['t1', 't1']);
    vi.useFakeTimers({ toFake: ['Date'], now: expiresAtMs - 29_000 });
    expiresAtMs = undefined;
    expect((await client.behave({})).text).toBe('t2');
    expect((await client.behave({}, { metadata: { token: 'mine' } })).text).toBe('mine,t3');
  });

  test('keep a channel off the fabrics that leave the host, unless that is allowed', async () => {
    const call = () => ({ metadata: { token: 'secret' } });
    const { address } = await serve({ tls: { cert, key } }, '127.0.0.1:0');
    const options: ChannelOptions = { tls: { ca }, fabric: 'tcp' };
    const error = await caught(reach(address, { ...options, credentials: { call } }).echo({}));
    expect(error.message).toMatch(/tcp: credentials of calls are not sent over it/);
    const told = reach(address, { ...options, credentials: { call, unsealed: true } });
    expect((await told.behave({})).text).toBe('secret');
    expect((await reach(address, { tls: { ca }, credentials: { call } }).behave({})).text).toBe('secret');
  });

  test('that cannot be had fail that call', async () => {
    const { address } = await serve({});
    let good = false;
    const call = () => {
      if (!good) throw new Error('no vault');
      return { metadata: {} };
    };
    const client = reach(address, { credentials: { call } });
    expect(await caught(client.echo({}))).toMatchObject({ code: Status.UNAUTHENTICATED, processed: 'no' });
    good = true;
    await client.echo({});
  });

  test('whose function hangs once are asked for again: nobody waits for it for ever', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let asked = 0;
    const kept = new KeptCredentials(() =>
      ++asked === 1 ? new Promise(() => undefined) : { metadata: { token: 'here' } },
    );
    const waiting = [caught(kept.metadata()), caught(kept.metadata())];
    await vi.advanceTimersByTimeAsync(30_000);
    for (const error of await Promise.all(waiting))
      expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect((await kept.metadata()).get('token')).toBe('here');
    expect([asked, vi.getTimerCount()]).toEqual([2, 0]);
  });
});
