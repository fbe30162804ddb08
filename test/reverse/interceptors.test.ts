/**
 * Tests interceptors, deadlines, cancellation and metadata of calls from a server to its client, which work
 * as for all other calls.
 */
import {
  type Channel,
  createContextKey,
  createInProcessChannel,
  type Interceptor,
  Metadata,
  RpcError,
  Status,
} from 'rdma-rpc';
import { type Peers, peersOf, type ReverseServer, serveReverse } from 'rdma-rpc/reverse';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { caught } from '../stream/stream-world.ts';

let channel: Channel;
let reverse: ReverseServer;
let log: EchoLog;

/**
 * Opens a client of the client's echo service. `inner` are interceptors of the client's handlers, and `outer`
 * are interceptors of the server's calls.
 */
async function open(inner: readonly Interceptor[], outer: readonly Interceptor[], handlers: object = {}) {
  log = { started: 0, aborted: [] };
  let peers: Peers | undefined;
  channel = createInProcessChannel((server) => {
    peers = peersOf(server);
  });
  reverse = serveReverse(channel, { interceptors: inner }).add(EchoDefinition, {
    ...echoHandlers(log),
    ...handlers,
  });
  await reverse.ready;
  return peers!.client(EchoDefinition, peers!.all[0]!, { interceptors: outer });
}
afterEach(async () => {
  await reverse.close();
  await channel.close();
});

/** Returns an interceptor that records the calls that it sees. */
function witness(name: string, lines: string[]): Interceptor {
  return (next) => async (request) => {
    lines.push(`${name} ${request.side} ${request.method.name}`);
    try {
      const response = await next(request);
      lines.push(`${name} OK`);
      return response;
    } catch (error) {
      lines.push(`${name} ${RpcError.from(error).codeName}`);
      throw error;
    }
  };
}

describe('interceptors of reverse calls', () => {
  test('the first interceptor is outermost, on both sides', async () => {
    const lines: string[] = [];
    const echo = await open(
      [witness('c', lines), witness('d', lines)],
      [witness('a', lines), witness('b', lines)],
    );
    await echo.echo({ number: 1 });
    expect(lines).toEqual([
      'a client Echo',
      'b client Echo',
      'c server Echo',
      'd server Echo',
      'd OK',
      'c OK',
      'b OK',
      'a OK',
    ]);
  });

  test('see the original errors on the side of the handler, and RpcErrors on the other side', async () => {
    const lines: string[] = [];
    const echo = await open([witness('in', lines)], [witness('out', lines)]);
    expect((await caught(() => echo.behave({ text: 'throw' }))).code).toBe(Status.INTERNAL);
    expect((await caught(() => echo.missing({}))).code).toBe(Status.UNIMPLEMENTED);
    expect(lines).toEqual([
      'out client Behave',
      'in server Behave',
      'in UNKNOWN',
      'out INTERNAL',
      'out client Missing',
      'out UNIMPLEMENTED',
    ]);
  });

  test('change messages and metadata in both directions', async () => {
    const key = createContextKey('nobody', 'who');
    const inner: Interceptor = (next) => async (request) => {
      request.values.set(key, String(request.metadata.get('who')));
      const response = await next(request);
      response.trailer.set('seen', 'by the inner');
      return response;
    };
    const outer: Interceptor = (next) => async (request) => {
      request.metadata.set('who', 'Ada');
      const response = await next(request);
      if (response.stream) return response;
      return { ...response, message: { ...(response.message as object), number: 7 } };
    };
    const echo = await open([inner], [outer], {
      behave: (_: unknown, context: { values: { get(k: typeof key): string } }) => ({
        text: context.values.get(key),
      }),
    });
    let trailer = new Metadata();
    const answer = await echo.behave({}, { onTrailer: (got) => (trailer = got) });
    expect([answer.text, answer.number, trailer.get('seen')]).toEqual(['Ada', 7, 'by the inner']);
  });

  test('answer in place of the handler, refuse, and repeat', async () => {
    let attempts = 0;
    const protection: Interceptor = (next) => (request) =>
      ++attempts < 3 ? Promise.reject(new RpcError(Status.UNAVAILABLE, 'not yet')) : next(request);
    const again: Interceptor = (next) => async (request) => {
      for (;;) {
        try {
          return await next(request);
        } catch (error) {
          if (RpcError.from(error).code !== Status.UNAVAILABLE) throw error;
        }
      }
    };
    const echo = await open([protection], [again]);
    expect((await echo.echo({ number: 5 })).number).toBe(5);
    expect([attempts, log.started]).toEqual([3, 1]);
  });
});

describe('a reverse call', () => {
  test('carries its time limit', async () => {
    const echo = await open([], []);
    const { number } = await echo.behave({ text: 'time left' }, { timeoutMs: 600_000 });
    expect(number).toBeGreaterThan(0);
    expect(number).toBeLessThanOrEqual(600_000);
    expect((await echo.behave({ text: 'time left' })).number).toBe(0);
  });

  test('shows interceptors its time limit, and fires their signal when the caller cancels', async () => {
    let seen: number | undefined;
    let reason: unknown;
    const inner: Interceptor = (next) => (request) => {
      seen = request.timeoutMs;
      request.signal?.addEventListener('abort', () => (reason = request.signal?.reason));
      return next(request);
    };
    const echo = await open([inner], [witness('out', [])]);
    const controller = new AbortController();
    const call = caught(() =>
      echo.behave({ text: 'hang' }, { signal: controller.signal, timeoutMs: 600_000 }),
    );
    await vi.waitFor(() => expect(log.started).toBe(1));
    controller.abort();
    expect(await call).toMatchObject({ code: Status.CANCELLED, processed: 'maybe' });
    await vi.waitFor(() => expect(reason).toMatchObject({ code: Status.CANCELLED }));
    expect(seen).toBeGreaterThan(0);
  });
});

test.each<[string, () => unknown, RegExp]>([
  ['an unknown option', () => serveReverse(channel, { interceptor: [] } as never), /interceptor/],
  ['no list', () => serveReverse(channel, { interceptors: 5 } as never), /list of functions/],
])('serveReverse refuses %s', async (_, make, text) => {
  await open([], []);
  expect(make).toThrow(text);
});
