/**
 * Tests the default report to an application about its handlers' errors: each kind once, with its stack, and
 * the number of the others. Results that are not errors cause no warning.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createChannel,
  createClient,
  createInProcessChannel,
  createServer,
  type HandlerContext,
  type Handlers,
  type InProcessOptions,
  Metadata,
  RpcError,
  Status,
} from 'rdma-rpc';
import { detail, ErrorInfo } from 'rdma-rpc/details';
import { toNiceGrpcHandlers } from 'rdma-rpc/grpc/server';
import { peersOf, serveReverse } from 'rdma-rpc/reverse';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { HandlerErrors } from '../../runtime/core/warnings.ts';
import { handlerErrorKinds, handlerErrorSumMs, handlerErrorText } from '../../runtime/limits.ts';
import { turn } from '../channel/bed.ts';
import { EchoDefinition, type EchoMessageInit } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';

let warned: { text: string; detail: string }[];
beforeEach(() => {
  warned = [];
  vi.spyOn(process, 'emitWarning').mockImplementation((text, options) => {
    warned.push({ text: String(text), detail: (options as { detail?: string }).detail ?? '' });
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

type EchoHandler = Handlers<typeof EchoDefinition>['echo'];
async function withEcho(
  echo: EchoHandler,
  use: (call: (options?: { timeoutMs?: number; signal?: AbortSignal }) => Promise<unknown>) => Promise<void>,
  options: InProcessOptions = {},
): Promise<void> {
  const channel = createInProcessChannel((server) => server.add(EchoDefinition, { echo }), options);
  const client = createClient(EchoDefinition, channel);
  await channel.ready();
  await use((given) => client.echo({}, given).catch((error: unknown) => error));
  await channel.close();
}

test('the warning about details that are too large names them, and not a failure of the handler', async () => {
  const details = [detail(ErrorInfo, { reason: 'x'.repeat(9000) })];
  const thrown = new RpcError(Status.NOT_FOUND, 'gone', { details });
  const echo = () => {
    throw thrown;
  };
  await withEcho(echo, async (call) => expect(await call()).toMatchObject({ rawMessage: 'gone' }));
  expect(warned).toHaveLength(1);
  expect(warned[0]?.text).toMatch(
    /^test.echo.Echo\/Echo: the details of this error were left out: \d+ bytes, at most \d+ fit \(onHandler/,
  );
  expect(warned[0]?.detail).toContain('NOT_FOUND: gone');
});

describe('without onHandlerError', () => {
  function brokenHandler(): never {
    throw new TypeError('users is undefined', { cause: new Error('no database') });
  }

  test.each<[string, EchoHandler, RegExp[]]>([
    ['throws', brokenHandler, [/TypeError: users is undefined/, /at .*brokenHandler/, /no database/]],
    ['rejects', async () => brokenHandler(), [/TypeError: users is undefined/, /at .*brokenHandler/]],
    ['returns null', () => null as unknown as EchoMessageInit, [/expected an object, got null/]],
    ['resolves with null', async () => null as unknown as EchoMessageInit, [/expected an object, got null/]],
    ['returns a list', () => [] as EchoMessageInit, [/expected an object/]],
    ['returns a number for a string', () => ({ text: 7 as unknown as string }), [/EchoMessage.text/]],
    [
      'throws what is no Error',
      () => {
        throw { odd: true };
      },
      [/odd: true/],
    ],
  ])('a handler that %s is shown once, with all that is known', async (_, echo, patterns) => {
    await withEcho(echo, async (call) => {
      expect(await call()).toMatchObject({ code: Status.INTERNAL, rawMessage: /the handler failed/ });
      await call();
    });
    expect(warned[0]?.text).toContain('test.echo.Echo/Echo: the handler failed');
    for (const pattern of patterns) expect(warned[0]?.detail).toMatch(pattern);
    // Errors that were only counted are reported at the end.
    expect(warned.slice(1).map(({ text }) => text)).toEqual([
      expect.stringMatching(/the handler has failed 1 more time with /),
    ]);
  });

  test('streams are treated alike, whether they fail at their beginning, in their middle, or in their single response', async () => {
    const channel = createInProcessChannel((server) =>
      server.add(StreamsDefinition, {
        count: () => {
          throw new Error('at the beginning');
        },
        async *echo() {
          yield {};
          throw new Error('in the middle');
        },
        sum: () => null as never,
      }),
    );
    const client = createClient(StreamsDefinition, channel);
    const read = async (messages: AsyncIterable<unknown>): Promise<unknown> => {
      try {
        for await (const _ of messages);
        return undefined;
      } catch (error) {
        return error;
      }
    };
    expect(await read(client.count({}))).toMatchObject({ code: Status.INTERNAL });
    expect(await read(client.echo([]))).toMatchObject({ code: Status.INTERNAL });
    expect(await client.sum([]).catch((error: unknown) => error)).toMatchObject({ code: Status.INTERNAL });
    await channel.close();
    const details = warned.map(({ detail }) => detail.split('\n')[0]);
    expect(details).toEqual([
      'Error: at the beginning',
      'Error: in the middle',
      expect.stringContaining('expected an object, got null'),
    ]);
  });

  test('an RpcError is an answer, and causes no warning', async () => {
    const echo = (): never => {
      throw new RpcError(Status.NOT_FOUND, 'no such thing');
    };
    await withEcho(echo, async (call) => void (await call()));
    expect(warned).toEqual([]);
  });

  test('with a log the error is a line of the log, and a log that throws is ignored', async () => {
    const lines: string[] = [];
    await withEcho(
      brokenHandler,
      async (call) => {
        expect(await call()).toMatchObject({ code: Status.INTERNAL });
        expect(await call()).toMatchObject({ code: Status.INTERNAL });
      },
      {
        log: (line) => {
          lines.push(line);
          if (line.includes('handler')) throw new Error('a log that fails');
        },
      },
    );
    expect(lines.join()).toMatch(/Echo\/Echo: the handler failed[\s\S]*brokenHandler/);
    expect(new Set(warned.map(({ text }) => text))).toEqual(new Set(['the function `log` has failed']));
  });
});

test('onHandlerError gets all errors instead of the log, and may fail in any way', async () => {
  const heard: unknown[] = [];
  const ways = [
    () => undefined,
    () => {
      throw new Error('a listener that throws');
    },
    () => Promise.reject(new Error('a listener that rejects')),
  ];
  const echo = (): never => {
    throw new Error('broken');
  };
  const onHandlerError = (error: unknown): unknown => ways[heard.push(error) - 1]?.();
  const three = async (call: () => Promise<unknown>): Promise<void> => {
    for (const _ of ways) expect(await call()).toMatchObject({ code: Status.INTERNAL });
  };
  await withEcho(echo, three, { onHandlerError: onHandlerError as () => void });
  expect(heard.map(String)).toEqual(['Error: broken', 'Error: broken', 'Error: broken']);
  const details = warned.map(({ text, detail }) => `${text}: ${detail.split('\n')[0]}`);
  expect(details).toEqual([
    'test.echo.Echo/Echo: onHandlerError has failed: Error: a listener that throws',
    'test.echo.Echo/Echo: onHandlerError has failed: Error: a listener that rejects',
  ]);
});

test('errors of handlers of reverse calls are shown in the same way', async () => {
  const server = createServer();
  const peers = peersOf(server);
  const channel = createChannel(await server.listen('127.0.0.1:0'));
  const serving = serveReverse(channel).add(EchoDefinition, {
    echo: () => {
      throw new TypeError('users is undefined');
    },
    behave: () => ({ txt: 'a' }) as EchoMessageInit,
  });
  await serving.ready;
  const client = peers.client(EchoDefinition, peers.all[0]!);
  await expect(client.echo({})).rejects.toMatchObject({ code: Status.INTERNAL });
  await client.behave({});
  await serving.close();
  await channel.close();
  await server.shutdown();
  expect(warned.map(({ text, detail }) => `${text} ${detail}`)).toEqual([
    expect.stringContaining('TypeError: users is undefined'),
    expect.stringContaining('did you mean `text`?'),
  ]);
});

test('errors of handlers that the adapters add to gRPC servers are shown in the same way', async () => {
  const broken = (): never => {
    throw new TypeError('users is undefined');
  };
  const handlers = toNiceGrpcHandlers(EchoDefinition, { echo: broken }) as unknown as {
    echo(request: object, context: object): Promise<unknown>;
  };
  const theirs = { peer: 'a', metadata: [], header: new Metadata(), trailer: new Metadata(), signal: never };
  await expect(handlers.echo({}, theirs)).rejects.toMatchObject({ code: Status.INTERNAL });
  expect(warned.map(({ detail }) => detail.split('\n')[0])).toEqual(['TypeError: users is undefined']);
});
const never = new AbortController().signal;

describe('many errors', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  });
  const lines: string[] = [];
  const open = (): HandlerErrors => {
    lines.length = 0;
    return new HandlerErrors(undefined, (text, detail) => lines.push(`${text} | ${detail?.split('\n')[0]}`));
  };

  test('the same error ten thousand times causes one warning, and one sum per minute', () => {
    const errors = open();
    for (let i = 0; i < 10_000; ++i) errors.report(new Error('broken'), 'a/B');
    expect(lines).toEqual([expect.stringMatching(/^a\/B: the handler failed.* \| Error: broken$/)]);
    vi.advanceTimersByTime(handlerErrorSumMs);
    expect(lines[1]).toContain('a/B: the handler has failed 9999 more times with Error: broken');
    errors.report(new Error('broken'), 'a/B');
    vi.advanceTimersByTime(handlerErrorSumMs);
    expect(lines[2]).toContain('a/B: the handler has failed 1 more time');
    expect(lines).toHaveLength(3);
  });

  test('an error that has not occurred for a minute is shown in full again, and no timer is left', () => {
    const errors = open();
    errors.report(new Error('broken'), 'a/B');
    vi.advanceTimersByTime(handlerErrorSumMs);
    expect(vi.getTimerCount()).toBe(0);
    errors.report(new Error('broken'), 'a/B');
    expect(lines).toHaveLength(2);
    expect(lines[1]).toBe(lines[0]);
  });

  test('of many different errors, a few are shown for each method', () => {
    const errors = open();
    for (let i = 0; i < 1000; ++i)
      for (const method of ['a/B', 'a/C']) errors.report(new Error(`no user ${i}`), method);
    expect(lines).toHaveLength(2 * handlerErrorKinds);
    vi.advanceTimersByTime(handlerErrorSumMs);
    expect(lines.slice(2 * handlerErrorKinds)).toEqual([
      expect.stringContaining(
        `a/B: the handler has failed ${1000 - handlerErrorKinds} more times with other`,
      ),
      expect.stringContaining(
        `a/C: the handler has failed ${1000 - handlerErrorKinds} more times with other`,
      ),
    ]);
  });

  test.each<[string, () => unknown]>([
    ['huge', () => new Error('x'.repeat(10_000_000))],
    [
      'hostile',
      () =>
        new Proxy(new Error('x'), {
          get: () => {
            throw new Error('no');
          },
        }),
    ],
    ['its own cause', () => circular()],
  ])('an error that is %s is shown as far as it can be', (_, make) => {
    const texts: string[] = [];
    const errors = new HandlerErrors(undefined, (text, detail) => texts.push(`${text}${detail}`));
    errors.report(make(), 'a/B');
    expect(texts).toHaveLength(1);
    expect(texts[0]!.length).toBeLessThan(2 * handlerErrorText);
  });
});

function circular(): Error {
  const error = new Error('round');
  error.cause = error;
  return error;
}

describe('an error after the end of its call', () => {
  /** The error that a handler throws after its signal has fired. */
  const cases: [string, (context: HandlerContext) => Promise<never>, string[]][] = [
    [
      'the AbortError of a function of Node',
      ({ signal }) => sleep(60_000, undefined, { signal }) as Promise<never>,
      [],
    ],
    ["the signal's reason", ({ signal }) => fired(signal).then(() => signal.throwIfAborted() as never), []],
    [
      'an AbortError without a cause',
      ({ signal }) =>
        fired(signal).then(() => Promise.reject(new DOMException('stopped', 'AbortError')) as Promise<never>),
      [],
    ],
    [
      'an error that is none',
      ({ signal }) => fired(signal).then(() => Promise.reject(new TypeError('cleaning up failed'))),
      ['TypeError: cleaning up failed'],
    ],
  ];
  const fired = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve()));

  test.each(cases)('%s: the client has cancelled the call', async (_, end, shown) => {
    const controller = new AbortController();
    let begun = false;
    const echo = (_request: unknown, context: HandlerContext): Promise<never> => {
      begun = true;
      return end(context);
    };
    await withEcho(echo, async (call) => {
      const called = call({ signal: controller.signal });
      while (!begun) await turn();
      controller.abort();
      expect(await called).toMatchObject({ code: Status.CANCELLED });
      for (let i = 0; i < 20; ++i) await turn();
    });
    expect(warned.map(({ detail }) => detail.split('\n')[0])).toEqual(shown);
  });

  test.each(cases)("%s: past the server's own limit", async (_, end, shown) => {
    await withEcho(
      (_request, context) => end(context),
      async (call) => {
        expect(await call()).toMatchObject({ code: Status.DEADLINE_EXCEEDED, processed: 'yes' });
        for (let i = 0; i < 20; ++i) await turn();
      },
      { timeoutMaxMs: 20 },
    );
    expect(warned.map(({ detail }) => detail.split('\n')[0])).toEqual(shown);
  });

  test.each(cases)('%s: the client has left the stream', async (_, end, shown) => {
    const channel = createInProcessChannel((server) =>
      server.add(StreamsDefinition, {
        async *count(_order, context) {
          yield {};
          await end(context);
        },
      }),
    );
    for await (const _item of createClient(StreamsDefinition, channel).count({})) break;
    for (let i = 0; i < 50; ++i) await turn();
    await channel.close();
    expect(warned.map(({ detail }) => detail.split('\n')[0])).toEqual(shown);
  });

  test('an AbortError of a call that was not cancelled is an error like any other', async () => {
    const echo = (): Promise<never> => sleep(60_000, undefined, { signal: AbortSignal.abort() }) as never;
    await withEcho(echo, async (call) => {
      expect(await call()).toMatchObject({ code: Status.INTERNAL });
    });
    expect(warned[0]?.detail).toMatch(/AbortError/);
  });
});
