/**
 * Tests interceptors of unary calls, on both sides: their order, the values that they see, and the values
 * that they may change.
 */
import {
  createClient,
  createContextKey,
  type Interceptor,
  Metadata,
  RpcError,
  type RpcRequest,
  Status,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { EchoDefinition, type EchoMessage } from './gen/echo.rdma.ts';
import { openPair, type Pair, pairWays } from './pair.ts';

let pair: Pair | undefined;
afterEach(async () => {
  await pair?.close();
  pair = undefined;
});

type Use = Parameters<typeof openPair>[1];
const outcome = (call: Promise<unknown>): Promise<RpcError> =>
  call.then(() => Promise.reject(new Error('it worked')), RpcError.from);

/** Records when the interceptor is entered and left. */
const noted =
  (notes: string[], name: string): Interceptor =>
  (next) =>
  async (request) => {
    notes.push(`${name} ${request.side}`);
    const response = await next(request);
    notes.push(`${name} done`);
    return response;
  };

const changed =
  (change: (request: RpcRequest) => Partial<RpcRequest>): Interceptor =>
  (next) =>
  (request) =>
    next({ ...request, ...change(request) } as RpcRequest);

describe.each(pairWays)('%s', (way) => {
  const open = async (use: Use, channelOptions = {}, serverOptions = {}) => {
    pair = await openPair(way, use, serverOptions, channelOptions);
    return pair.channel;
  };
  const echoing: Use = (server) =>
    server.add(EchoDefinition, { echo: (request) => request, behave: async (request) => request });

  test('run in the order channel, *, method, server, scope, inner scope, and return in reverse order', async () => {
    const notes: string[] = [];
    const by = (name: string) => noted(notes, name);
    const channel = await open(
      (server) =>
        server
          .use(by('server 1'), by('server 2'))
          .use(by('server 3'))
          .scope(by('scope'))
          .scope(by('inner'))
          .add(EchoDefinition, {
            echo: (request) => {
              notes.push('handler');
              return request;
            },
          }),
      { interceptors: [by('channel')] },
    );
    const { echo } = createClient(EchoDefinition, channel, {
      '*': { interceptors: [by('all 1'), by('all 2')] },
      echo: { interceptors: [by('method')] },
    });
    expect((await echo({ text: 'x' })).text).toBe('x');
    const client = ['channel', 'all 1', 'all 2', 'method'];
    const server = ['server 1', 'server 2', 'server 3', 'scope', 'inner'];
    expect(notes).toEqual([
      ...client.map((name) => `${name} client`),
      ...server.map((name) => `${name} server`),
      'handler',
      ...server.toReversed().map((name) => `${name} done`),
      ...client.toReversed().map((name) => `${name} done`),
    ]);
  });

  test('do not run for services outside of their scope, nor for methods that a client does not name', async () => {
    const notes: string[] = [];
    const Other = {
      ...EchoDefinition,
      fullName: 'other',
      methods: { echo: { ...EchoDefinition.methods.echo, name: 'Echo', fullName: 'other/Echo', id: 77_777 } },
    };
    const channel = await open((server) => {
      server.scope(noted(notes, 'scope')).add(EchoDefinition, { echo: (request) => request });
      server.add(Other, { echo: (request) => request });
    });
    await createClient(Other, channel).echo({});
    expect(notes).toEqual([]);
    const one = createClient(EchoDefinition, channel, { fetch: { interceptors: [noted(notes, 'method')] } });
    await one.echo({});
    expect(notes).toEqual(['scope server', 'scope done']);
  });

  test('get the properties of the call', async () => {
    const seen: RpcRequest[] = [];
    const look: Interceptor = (next) => (request) => {
      seen.push(request);
      return next(request);
    };
    const channel = await open((server) =>
      server.use(look).add(EchoDefinition, { echo: (request) => request }),
    );
    const { echo } = createClient(EchoDefinition, channel, {
      '*': { interceptors: [look], timeoutMs: 9000 },
    });
    const { signal } = new AbortController();
    await echo({ text: 'x' }, { metadata: { user: 'ada' }, signal });
    const common = { stream: false, service: EchoDefinition, method: EchoDefinition.methods.echo };
    expect(seen[0]).toMatchObject({ ...common, side: 'client', timeoutMs: 9000, context: undefined });
    expect(seen[0]!.signal).toBe(signal);
    expect(seen[1]).toMatchObject({ ...common, side: 'server', message: { text: 'x' } });
    expect(seen[1]!.timeoutMs).toBeLessThanOrEqual(9000);
    expect(seen[1]!.metadata.get('user')).toBe('ada');
    expect(seen[1]!.context!.method).toBe('test.echo.Echo/Echo');
    expect(seen[1]!.signal).toBe(seen[1]!.context!.signal);
  });

  test('may change messages, metadata and values in both directions', async () => {
    const user = createContextKey('nobody');
    const client: Interceptor = (next) => async (request) => {
      request.metadata.set('token', 't');
      const response = await next({ ...request, message: { text: 'a' } } as RpcRequest);
      response.trailer.set('client', String(response.header.get('server')));
      return { ...response, message: { ...(response.message as EchoMessage), number: 7 } } as typeof response;
    };
    const server: Interceptor = (next) => async (request) => {
      request.values.set(user, `bearer of ${request.metadata.get('token')}`);
      const message = { ...(request.message as EchoMessage), text: 'b' };
      const response = await next({
        ...request,
        message,
        metadata: new Metadata({ own: 'x' }),
      } as RpcRequest);
      response.header.set('server', 's');
      return response;
    };
    const channel = await open((s) =>
      s.use(server).add(EchoDefinition, {
        echo: (request, { values, metadata }) => ({
          text: `${request.text} ${values.get(user)} ${[...metadata]}`,
        }),
      }),
    );
    const { echo } = createClient(EchoDefinition, channel, { '*': { interceptors: [client] } });
    const trailers: string[] = [];
    const metadata = new Metadata();
    const answer = await echo({}, { metadata, onTrailer: (trailer) => trailers.push(String([...trailer])) });
    expect(answer).toMatchObject({ text: 'b bearer of t own,x', number: 7 });
    expect(trailers).toEqual(['client,s']);
    expect(metadata.size).toBe(0);
  });

  test.each(['client', 'server'] as const)('of the %s may answer without calling next', async (side) => {
    const answer: Interceptor = () => async (request) => ({
      ...request,
      stream: false,
      message: { text: 'cached' },
      header: new Metadata({ from: 'cache' }),
      trailer: new Metadata(),
    });
    let handled = 0;
    const channel = await open((server) =>
      server.use(...(side === 'server' ? [answer] : [])).add(EchoDefinition, {
        echo: () => {
          ++handled;
          return {};
        },
      }),
    );
    const interceptors = side === 'client' ? [answer] : [];
    const { echo } = createClient(EchoDefinition, channel, { '*': { interceptors } });
    const headers: string[] = [];
    expect((await echo({}, { onHeader: (header) => headers.push(String([...header])) })).text).toBe('cached');
    expect(headers).toEqual(['from,cache']);
    expect(handled).toBe(0);
  });

  test('may call next again; the time limit covers all attempts', async () => {
    let handled = 0;
    const left: number[] = [];
    const retry: Interceptor = (next) => async (request) => {
      for (let attempt = 1; ; ++attempt) {
        try {
          return await next(request);
        } catch (error) {
          if (RpcError.from(error).code !== Status.ABORTED || attempt === 3) throw error;
        }
      }
    };
    const channel = await open((server) =>
      server.add(EchoDefinition, {
        behave: async (request, context) => {
          left.push(context.timeoutMs()!);
          if (++handled < 3) throw new RpcError(Status.ABORTED, 'again');
          return request;
        },
      }),
    );
    const { behave } = createClient(EchoDefinition, channel, { '*': { interceptors: [retry] } });
    expect((await behave({ text: 'x' }, { timeoutMs: 10_000 })).text).toBe('x');
    expect(left).toHaveLength(3);
    expect(left).toEqual(left.toSorted((a, b) => b - a));
  });

  test('see unchanged errors: on the server the one that the handler threw, on the client an RpcError', async () => {
    const seen: string[] = [];
    const watch: Interceptor = (next) => (request) =>
      next(request).catch((error: Error) => {
        seen.push(`${request.side} ${error}`);
        throw error;
      });
    const channel = await open((server) =>
      server.use(watch).add(EchoDefinition, {
        echo: () => {
          throw new Error('a secret');
        },
      }),
    );
    const { echo } = createClient(EchoDefinition, channel, { '*': { interceptors: [watch] } });
    expect(await outcome(echo({}))).toMatchObject({ code: Status.INTERNAL, processed: 'yes' });
    expect(seen).toEqual([
      'server Error: a secret',
      'client RpcError: INTERNAL: test.echo.Echo/Echo: the handler failed',
    ]);
  });

  test('end the call with their error; on the server its status is sent', async () => {
    const deny: Interceptor = () => () =>
      Promise.reject(new RpcError(Status.UNAUTHENTICATED, 'who are you?'));
    const channel = await open((server) => server.use(deny).add(EchoDefinition, { echo: () => ({}) }));
    expect(await outcome(createClient(EchoDefinition, channel).echo({}))).toMatchObject({
      code: Status.UNAUTHENTICATED,
      processed: 'yes',
    });
    const broken: Interceptor = () => () => {
      throw new TypeError('broken');
    };
    const own = createClient(EchoDefinition, channel, { '*': { interceptors: [broken] } });
    await expect(own.echo({})).rejects.toThrow(TypeError);
  });

  test('pass header and trailer of an error once, after the last attempt', async () => {
    const seen: string[] = [];
    const twice: Interceptor = (next) => (request) => next(request).catch(() => next(request));
    let attempts = 0;
    const channel = await open((server) =>
      server.add(EchoDefinition, {
        echo: (_, { header, trailer }) => {
          header.set('attempt', String(++attempts));
          trailer.set('cost', String(attempts));
          throw new RpcError(Status.ABORTED, 'no');
        },
      }),
    );
    const { echo } = createClient(EchoDefinition, channel, { '*': { interceptors: [twice] } });
    const call = echo(
      {},
      {
        onHeader: (header) => seen.push(`header ${[...header]}`),
        onTrailer: (trailer) => seen.push(`trailer ${[...trailer]}`),
      },
    );
    expect(await outcome(call)).toMatchObject({ code: Status.ABORTED });
    expect(seen).toEqual(['header attempt,2', 'trailer cost,2']);
  });

  test.each(['onHeader', 'onTrailer'] as const)('fail the call when %s throws', async (name) => {
    const channel = await open((server) =>
      server.add(EchoDefinition, {
        echo: (request, { header, trailer }) => {
          header.set('k', 'v');
          trailer.set('k', 'v');
          return request;
        },
      }),
    );
    const { echo } = createClient(EchoDefinition, channel, { '*': { interceptors: [(next) => next] } });
    const broken = () => {
      throw new Error('not today');
    };
    expect(await outcome(echo({}, { [name]: broken }))).toMatchObject({
      code: Status.INTERNAL,
      processed: 'yes',
      rawMessage: expect.stringMatching(/cannot be used: not today/),
    });
  });

  test('may set a time limit', async () => {
    const channel = await open((server) =>
      server.add(EchoDefinition, { behave: () => new Promise(() => {}) }),
    );
    const { behave } = createClient(EchoDefinition, channel, {
      '*': { interceptors: [changed(() => ({ timeoutMs: 20 }))] },
    });
    expect(await outcome(behave({}))).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
  });

  test('may set the signal of the handler', async () => {
    const controller = new AbortController();
    const channel = await open((server) =>
      server.use(changed(() => ({ signal: controller.signal }))).add(EchoDefinition, {
        behave: (_, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => resolve({ text: 'told' }));
            controller.abort();
          }),
      }),
    );
    expect((await createClient(EchoDefinition, channel).behave({})).text).toBe('told');
  });

  test("get the caller's values, and calls of a handler inherit the handler's values", async () => {
    const user = createContextKey('nobody', 'user');
    const seen: string[] = [];
    const look: Interceptor = (next) => (request) => {
      seen.push(`${request.side} ${request.values.get(user)}`);
      request.values.set(user, 'changed');
      return next(request);
    };
    const far = await openPair(way, echoing);
    const back = createClient(EchoDefinition, far.channel, { '*': { interceptors: [look] } });
    const channel = await open((server) =>
      server.add(EchoDefinition, {
        behave: async (_, context) => {
          context.values.set(user, 'ada');
          await back.echo({}, { context });
          return { text: context.values.get(user) };
        },
      }),
    );
    expect((await createClient(EchoDefinition, channel).behave({})).text).toBe('ada');
    expect(seen).toEqual(['client ada']);
    await far.close();
  });
});
