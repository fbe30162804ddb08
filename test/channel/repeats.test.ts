/**
 * Tests calls that are repeated. Calls that no handler has seen are repeated automatically, others only when
 * the options ask for it. The tests cover pauses, a budget, push-back, and several attempts at once.
 */
import { type CallOptions, createClient, type HandlerContext, Metadata, RpcError, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RpcServer } from '../../runtime/server/server.ts';
import { EchoDefinition, type EchoMessage, type EchoMessageInit } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { Bed, caught, turn, until } from './bed.ts';

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
});
afterEach(async () => {
  vi.useRealTimers();
  await bed.close();
});

const { methods } = EchoDefinition;
/** `behave` may be called twice for one call, `echo` may not. */
const definition = {
  ...EchoDefinition,
  methods: {
    ...methods,
    behave: { ...methods.behave, name: 'Behave', options: { idempotencyLevel: 'IDEMPOTENT' } },
  },
} as const;

type Handler = (request: EchoMessage, context: HandlerContext, call: number) => unknown;

/** Returns a client of a server at a:1 whose two methods do the same; `calls` counts the calls. */
function scripted(handler: Handler, defaults: Parameters<typeof createClient<typeof definition>>[2] = {}) {
  const seen = { calls: 0, aborted: 0 };
  const handle = (request: EchoMessage, context: HandlerContext): Promise<EchoMessageInit> => {
    const call = ++seen.calls;
    context.signal.addEventListener('abort', () => ++seen.aborted);
    return Promise.resolve(handler(request, context, call)) as Promise<EchoMessageInit>;
  };
  const server = new RpcServer({}, ['sim']).add(EchoDefinition, { echo: handle, behave: handle });
  bed.running.set('a:1', { server, log: { started: 0, aborted: [] } });
  const channel = bed.channel(['a:1']);
  return { seen, channel, client: createClient(definition, channel, defaults) };
}
const fail = (
  code: (typeof Status)[keyof typeof Status] = Status.UNAVAILABLE,
  metadata?: Metadata,
): never => {
  throw new RpcError(code as never, 'as planned', { trailer: metadata });
};
const quick = { attemptsMax: 3, backoffMs: 0 } as const;

describe('a call that no handler has seen', () => {
  test('is made once more when the server has refused it, and only once', async () => {
    bed.start('a:1', 'b:1');
    const channel = bed.channel(['a:1', 'b:1']);
    const client = createClient(EchoDefinition, channel);
    await until(() => {
      void channel.ready().catch(() => undefined);
      return channel.addresses.every(({ state }) => state === 'ready');
    });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    // A handler that hangs keeps the connection to `a` open while the server at `a` refuses new calls.
    const hanging = [0, 1].map(() => caught(client.behave({ text: 'hang' })));
    await until(() => bed.at('a:1').log.started === 1 && bed.at('b:1').log.started === 1);
    const ended = bed.at('a:1').server.shutdown({ graceMs: 5000 });
    vi.advanceTimersByTime(2000);
    const answers = await Promise.all([1, 2, 3, 4].map((number) => client.echo({ number })));
    expect(answers.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
    vi.advanceTimersByTime(5000);
    await ended;
    vi.useRealTimers();
    await bed.stop('b:1');
    await Promise.all(hanging);
  });
});

describe('an onTrailer or onHeader that throws', () => {
  const ways = [{}, { retry: quick }, { hedging: { delayMs: 0 } }];
  const bad = (): never => {
    throw new Error('mine');
  };
  test.each(ways)('does not hide the error of a call, and fails one that would succeed: %j', async (way) => {
    const { client } = scripted(({ number }, { header, trailer }) => {
      header.set('header', 'h');
      trailer.set('why', 'x');
      return number === 1 ? fail(Status.NOT_FOUND) : {};
    });
    const options = { ...way, onTrailer: bad, onHeader: bad };
    const error = await caught(client.behave({ number: 1 }, options));
    expect(error).toMatchObject({ code: Status.NOT_FOUND, rawMessage: 'as planned' });
    const fault = await caught(client.behave({ number: 2 }, options));
    expect(fault).toMatchObject({
      code: Status.INTERNAL,
      processed: 'yes',
      rawMessage: expect.stringContaining('mine'),
    });
  });
});

describe('retry', () => {
  test('makes the call again until it succeeds', async () => {
    const { client, seen } = scripted((_, _context, call) => (call < 3 ? fail() : { number: call }));
    expect((await client.behave({}, { retry: quick })).number).toBe(3);
    expect(seen.calls).toBe(3);
  });

  test('makes at most the requested attempts, and fails with the last error', async () => {
    const { client, seen } = scripted(() => fail());
    expect(await caught(client.behave({}, { retry: quick }))).toMatchObject({ code: Status.UNAVAILABLE });
    expect(seen.calls).toBe(3);
  });

  test.each<[string, CallOptions, 'echo' | 'behave', number]>([
    ['nothing was asked for', {}, 'behave', 1],
    ['false', { retry: false }, 'behave', 1],
    ['another code', { retry: { ...quick, codes: [Status.ABORTED] } }, 'behave', 1],
    ['that code', { retry: { ...quick, codes: [Status.ABORTED, Status.UNAVAILABLE] } }, 'behave', 3],
  ])('%s', async (_, options, method, calls) => {
    const { client, seen } = scripted(() => fail());
    await caught(client[method]({}, options));
    expect(seen.calls).toBe(calls);
  });

  test('a call without an idempotency level is repeated when no handler can have run', async () => {
    const channel = bed.channel(['a:1'], { backoffMs: 1, backoffMaxMs: 1 });
    const call = createClient(definition, channel, { echo: { idempotent: false } }).echo(
      { number: 2 },
      { retry: { attemptsMax: 5, backoffMs: 10 } },
    );
    await until(() => bed.dialled.length === 1);
    bed.start('a:1');
    expect((await call).number).toBe(2);
  });

  test('one deadline holds for all attempts', async () => {
    const { client, seen } = scripted((_, context, call) => {
      expect(context.timeoutMs()).toBeLessThanOrEqual(1000);
      return call === 1 ? fail() : new Promise(() => undefined);
    });
    expect(await caught(client.behave({}, { retry: quick, timeoutMs: 1000 }))).toMatchObject({
      code: Status.DEADLINE_EXCEEDED,
    });
    expect(seen.calls).toBe(2);
  });

  test('a pause that would exceed the deadline is not begun', async () => {
    const { client, seen } = scripted(() => fail());
    const retry = { attemptsMax: 3, backoffMs: 60_000, backoffMaxMs: 60_000 };
    expect(await caught(client.behave({}, { retry, timeoutMs: 20_000 }))).toMatchObject({
      code: Status.UNAVAILABLE,
    });
    expect(seen.calls).toBe(1);
  });

  test('the signal ends a pause', async () => {
    const { client, seen } = scripted(() => fail());
    const controller = new AbortController();
    const call = caught(
      client.behave(
        {},
        { retry: { attemptsMax: 3, backoffMs: 60_000, backoffMaxMs: 60_000 }, signal: controller.signal },
      ),
    );
    await until(() => seen.calls === 1);
    await turn();
    controller.abort();
    expect(await call).toMatchObject({ code: Status.CANCELLED });
    expect(seen.calls).toBe(1);
  });

  test.each<[string, number]>([
    ['0', 3],
    ['-1', 1],
    ['soon', 1],
  ])('the server says when: retry-pushback-ms %s, attempts %i', async (value, calls) => {
    const { client, seen } = scripted(() =>
      fail(Status.UNAVAILABLE, new Metadata({ 'retry-pushback-ms': value })),
    );
    await caught(client.behave({}, { retry: { attemptsMax: 3, backoffMs: value === '0' ? 60_000 : 0 } }));
    expect(seen.calls).toBe(calls);
  });

  test('header and trailer are those of the attempt whose result counts', async () => {
    const { client } = scripted((_, context, call) => {
      context.trailer.set('call', String(call));
      return call < 3 ? fail(Status.UNAVAILABLE, new Metadata({ call: String(call) })) : {};
    });
    const trailers: unknown[] = [];
    await client.behave({}, { retry: quick, onTrailer: (trailer) => trailers.push(trailer.get('call')) });
    expect(trailers).toEqual(['3']);
    const { client: other } = scripted((_, context) => {
      context.trailer.set('a', 'b');
      return {};
    });
    const thrown = other.behave(
      {},
      {
        retry: quick,
        onTrailer: () => {
          throw new Error('listener');
        },
      },
    );
    expect(await caught(thrown)).toMatchObject({ code: Status.INTERNAL, processed: 'yes' });
  });

  test('stops when half of the budget is used up, and resumes after successes', async () => {
    let sick = true;
    const { client, seen } = scripted(() => (sick ? fail() : {}), { behave: { retry: quick } });
    for (let i = 0; i < 4; ++i) await caught(client.behave({}));
    // 3 + 2 attempts reduce the bucket from 10 to 5. From then on, each call makes one attempt.
    expect(seen.calls).toBe(3 + 2 + 1 + 1);
    sick = false;
    for (let i = 0; i < 40; ++i) await client.behave({});
    sick = true;
    seen.calls = 0;
    await caught(client.behave({}));
    expect(seen.calls).toBe(2);
  });
});

describe('hedging', () => {
  test('the first answer counts, and the other attempts are cancelled', async () => {
    const { client, seen } = scripted((_, context, call) =>
      call === 3
        ? { number: 3 }
        : new Promise((resolve) => context.signal.addEventListener('abort', resolve)),
    );
    expect((await client.behave({}, { hedging: { delayMs: 1, attemptsMax: 4 } })).number).toBe(3);
    await until(() => seen.aborted >= 2);
    expect(seen.calls).toBeLessThanOrEqual(4);
  });

  test('makes no second attempt when the first one answers in time', async () => {
    const { client, seen } = scripted(() => ({ number: 1 }));
    await client.behave({}, { hedging: { delayMs: 60_000 } });
    expect(seen.calls).toBe(1);
  });

  test('a temporary error starts the next attempt at once, and any other error ends the call', async () => {
    const { client, seen } = scripted((_, _context, call) =>
      fail(call === 1 ? Status.UNAVAILABLE : Status.NOT_FOUND),
    );
    const error = await caught(client.behave({}, { hedging: { delayMs: 60_000, attemptsMax: 5 } }));
    expect(error).toMatchObject({ code: Status.NOT_FOUND });
    expect(seen.calls).toBe(2);
  });

  test('fails with the last error when all attempts fail', async () => {
    const { client, seen } = scripted(() => fail());
    const error = await caught(client.behave({}, { hedging: { delayMs: 0, attemptsMax: 3 } }));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE });
    expect(seen.calls).toBe(3);
  });

  test('the server can stop further attempts', async () => {
    const { client, seen } = scripted(() =>
      fail(Status.UNAVAILABLE, new Metadata({ 'retry-pushback-ms': '-1' })),
    );
    await caught(client.behave({}, { hedging: { delayMs: 60_000, attemptsMax: 3 } }));
    expect(seen.calls).toBe(1);
  });

  test('the signal and the deadline end all attempts', async () => {
    const { client, seen } = scripted(() => new Promise(() => undefined));
    const hedging = { delayMs: 0, attemptsMax: 2 };
    expect(await caught(client.behave({}, { hedging, timeoutMs: 30 }))).toMatchObject({
      code: Status.DEADLINE_EXCEEDED,
    });
    const before = seen.calls;
    const controller = new AbortController();
    const call = caught(client.behave({}, { hedging, signal: controller.signal }));
    await until(() => seen.calls === before + 2);
    controller.abort();
    expect(await call).toMatchObject({ code: Status.CANCELLED });
    await until(() => seen.aborted === seen.calls);
  });
});

describe('defaults of a client', () => {
  test('metadata: the keys of a call replace those of the client', async () => {
    const { client } = scripted((_, { metadata }) => ({ text: [...metadata].join(' ') }), {
      '*': { metadata: { tenant: 'a', role: 'b' } },
    });
    expect((await client.echo({})).text).toBe('tenant,a role,b');
    expect((await client.echo({}, { metadata: { role: ['c', 'd'] } })).text).toBe('tenant,a role,c role,d');
    expect((await client.echo({}, { metadata: undefined })).text).toBe('tenant,a role,b');
  });

  test('retry: the value for a method overrides the value for all methods, and a call overrides both', async () => {
    const { client, seen } = scripted(() => fail(), {
      '*': { retry: { attemptsMax: 2, backoffMs: 0 } },
      behave: { retry: { attemptsMax: 4, backoffMs: 0 } },
    });
    await caught(client.behave({}));
    expect(seen.calls).toBe(4);
    await caught(client.behave({}, { retry: false }));
    expect(seen.calls).toBe(5);
  });

  test.each<[string, object, RegExp]>([
    ['attempts', { retry: { attemptsMax: 6 } }, /retry: attemptsMax: 6 is not an integer from 2 to 5/],
    ['a wrong name', { retry: { tries: 3 } }, /there is no option tries/],
    ['codes', { retry: { codes: [99] } }, /codes must be a list of Status codes/],
    ['OK among them', { hedging: { delayMs: 1, codes: [0] } }, /codes must be a list of Status codes/],
    ['no delay', { hedging: {} }, /hedging needs delayMs/],
    ['metadata', { metadata: { 'a b': 'c' } }, /metadata key/],
    ['a signal', { signal: new AbortController().signal }, /there is no option signal/],
  ])('%s: refused when the client is made', (_, defaults, text) => {
    const channel = bed.channel(['a:1']);
    expect(() => createClient(definition, channel, { behave: defaults as never })).toThrow(text);
  });

  const hedging = { delayMs: 60_000 };
  test.each<[string, object, RegExp]>([
    [
      'retry of a method that may not run twice',
      { echo: { retry: quick } },
      /createClient test\.echo\.Echo: echo: `retry` makes .*idempotency_level = IDEMPOTENT.*`idempotent: true`.*`idempotent: false`/,
    ],
    [
      'hedging of one',
      { echo: { hedging } },
      /createClient test\.echo\.Echo: echo: hedging may run .*idempotency_level = IDEMPOTENT.*`idempotent: true`/,
    ],
    ['hedging of one, from any policy', { echo: { hedging, idempotent: false } }, /echo: hedging may run/],
    [
      'hedging of one that its client takes back',
      { behave: { hedging, idempotent: false } },
      /behave: hedging/,
    ],
    ['both ways at once', { behave: { hedging, retry: quick } }, /behave: give either retry or hedging/],
    [
      'a value that is not true or false',
      { echo: { idempotent: 1 } },
      /idempotent of echo must be true or false/,
    ],
  ])('%s: refused when the client is made', (_, defaults, text) => {
    expect(() => createClient(definition, bed.channel(['a:1']), defaults as never)).toThrow(text);
    expect(() => createClient(definition, bed.channel(['a:1']), defaults as never)).toThrow(TypeError);
  });

  test('hedging for all methods is refused when no method allows it', () => {
    const channel = bed.channel(['a:1']);
    expect(() => createClient(EchoDefinition, channel, { '*': { hedging } })).toThrow(
      /\*: it fits none of the methods: hedging/,
    );
    createClient(definition, channel, { '*': { hedging } });
    createClient(EchoDefinition, channel, { '*': { hedging }, echo: { idempotent: true } });
  });

  test('streams use neither retry nor hedging', () => {
    const channel = bed.channel(['a:1']);
    for (const option of [{ retry: quick }, { hedging }])
      expect(() => createClient(StreamsDefinition, channel, { count: option as never })).toThrow(
        /count: a stream takes no `(retry|hedging)`/,
      );
  });

  test('idempotent: true stands for the idempotency level that a .proto lacks', async () => {
    const { client, seen } = scripted((_, _context, call) => (call < 3 ? fail() : { number: call }), {
      echo: { idempotent: true, retry: quick },
    });
    expect((await client.echo({})).number).toBe(3);
    expect(seen.calls).toBe(3);
    expect((await client.echo({}, { hedging })).number).toBe(4);
  });

  test.each<[string, object]>([
    ['idempotent: false', { '*': { idempotent: false }, echo: { retry: quick } }],
    ['retry for all methods', { '*': { retry: quick } }],
  ])('%s allows retries only of calls whose handler has not run', async (_, defaults) => {
    const { client, seen } = scripted(() => fail(), defaults);
    await caught(client.echo({}, { retry: quick }));
    expect(seen.calls).toBe(1);
  });

  test('the option for a method overrides the other option for all methods', async () => {
    const { client, seen } = scripted(() => fail(), {
      '*': { hedging: { delayMs: 60_000, attemptsMax: 5 } },
      behave: { retry: quick },
    });
    await caught(client.behave({}));
    expect(seen.calls).toBe(3);
  });

  test.each<[string, CallOptions, RegExp]>([
    ['both', { retry: quick, hedging: { delayMs: 1 } }, /either retry or hedging/],
    ['hedging of a method that may not run twice', { hedging: { delayMs: 1 } }, /idempotency_level/],
    ['retry of a method of which nobody says so', { retry: quick }, /`retry` makes .*idempotency_level/],
    ['a retry that is none', { retry: { attemptsMax: 1 } }, /from 2 to 5/],
  ])('%s: the call is refused', async (what, options, text) => {
    const { client, seen } = scripted(() => ({}));
    const method = what === 'both' ? 'behave' : 'echo';
    await expect(client[method]({}, options)).rejects.toThrow(text);
    expect(seen.calls).toBe(0);
  });
});
