/** Tests errors for wrong interceptors, and a check that methods without interceptors have no overhead. */
import {
  createClient,
  createInProcessChannel,
  createServer,
  type Interceptor,
  type RpcRequest,
} from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { HandlerTable } from '../../runtime/server/handlers.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';

describe('mistakes with interceptors are refused with an error that names them', () => {
  test.each<[string, () => unknown, RegExp]>([
    [
      'use() after add()',
      () =>
        createServer()
          .add(EchoDefinition, {})
          .use((next) => next),
      /call use\(\) before add\(\)/,
    ],
    ['no function, server', () => createServer().use(5 as never), /list of functions/],
    ['no function, scope', () => createServer().scope({} as never), /list of functions/],
    [
      'no list, channel',
      () => createInProcessChannel(() => {}, { interceptors: 5 as never }),
      /interceptors: must be a list of functions/,
    ],
    [
      'no list, client',
      () =>
        createClient(
          EchoDefinition,
          createInProcessChannel(() => {}),
          { echo: { interceptors: [5] as never } },
        ),
      /interceptors of echo/,
    ],
    [
      'no function made, client',
      () =>
        createClient(
          EchoDefinition,
          createInProcessChannel(() => {}),
          { '*': { interceptors: [(next) => next, function forgot() {} as never] } },
        ),
      /^test.echo.Echo\/Echo: interceptor 2 of 2 \(forgot\) returned undefined, not a function: write \(next\) =>/,
    ],
    [
      'no function made, server',
      () =>
        createServer()
          .use((() => Promise.resolve()) as never)
          .add(EchoDefinition, { echo: (request) => request }),
      /^test.echo.Echo\/Echo: interceptor 1 of 1 returned object/,
    ],
  ])('%s', (_, make, message) => {
    expect(make).toThrow(message);
  });

  const call = (client: Interceptor[], server: Interceptor[]) => {
    const faults: unknown[] = [];
    const channel = createInProcessChannel(
      (s) => s.use(...server).add(EchoDefinition, { echo: (request) => request }),
      { onHandlerError: (fault) => faults.push(fault) },
    );
    const { echo } = createClient(EchoDefinition, channel, { '*': { interceptors: client } });
    return echo({})
      .catch((error: Error) => String(faults[0] ?? error))
      .finally(() => channel.close());
  };
  const silent: Interceptor = () => async () => undefined as never;
  const fresh: Interceptor =
    (next) =>
    ({ side, service, method, message, metadata: header }) =>
      next({ side, service, method, stream: false, message, metadata: header } as RpcRequest);

  const no =
    (request: unknown): Interceptor =>
    (next) =>
    () =>
      next(request as RpcRequest);
  const flipped: Interceptor = (next) => (request) => next({ ...request, stream: true } as RpcRequest);

  test.each([
    ['no request, client', [no(undefined)], [], /gave next\(\) no request of this method/],
    ['no request, server', [], [no(5)], /gave next\(\) no request of this method/],
    ['a stream, client', [flipped], [], /gave next\(\) no request of this method/],
    ['no response, client', [silent], [], /gave no response/],
    ['no response, server', [], [silent], /gave no response/],
    ['a request of its own, server', [], [fresh], /give next\(\) a copy/],
  ])('%s', async (_, client, server, message) => {
    expect(await call(client, server)).toMatch(message);
  });
});

test('without interceptors the client uses the plain method', () => {
  const handler = () => ({});
  const handlers = new HandlerTable();
  handlers.add(EchoDefinition, { echo: handler });
  expect(handlers.find(EchoDefinition.methods.echo.id | 0)?.handler).toBe(handler);
});
