/**
 * Tests unknown names among the options of a call and among handlers. JavaScript would ignore them, so the
 * library reports them.
 */
import { Client, credentials } from '@grpc/grpc-js';
import {
  type Channel,
  createClient,
  createInProcessChannel,
  createServer,
  RpcError,
  type Server,
  Status,
} from 'rdma-rpc';
import { createGrpcClient } from 'rdma-rpc/grpc/client';
import { toGrpcJsHandlers } from 'rdma-rpc/grpc/server';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';

describe('options of a call', () => {
  let channel: Channel;
  const started = vi.fn((request: object) => request);
  beforeEach(() => {
    started.mockClear();
    channel = createInProcessChannel((server) => {
      server.add(EchoDefinition, { echo: started });
      server.add(StreamsDefinition, { *count() {} });
    });
  });
  afterEach(() => channel.close());

  const pass = { '*': { interceptors: [(next: (request: never) => unknown) => next] } } as never;
  const stream = async (call: AsyncIterable<unknown>): Promise<void> => {
    for await (const _ of call);
  };
  const calls: [string, (options: object) => Promise<unknown>][] = [
    ['a call', (options) => createClient(EchoDefinition, channel).echo({}, options)],
    ['one with interceptors', (options) => createClient(EchoDefinition, channel, pass).echo({}, options)],
    [
      'one with defaults',
      (options) => createClient(EchoDefinition, channel, { '*': { metadata: { a: 'b' } } }).echo({}, options),
    ],
    [
      'one that is made again',
      (options) => createClient(EchoDefinition, channel, { '*': { retry: {} } }).echo({}, options),
    ],
    ['a stream', (options) => stream(createClient(StreamsDefinition, channel).count({}, options))],
    [
      'a stream with interceptors',
      (options) => stream(createClient(StreamsDefinition, channel, pass).count({}, options)),
    ],
    [
      'a call over gRPC',
      (options) => {
        const grpc = new Client('127.0.0.1:1', credentials.createInsecure());
        return createGrpcClient(EchoDefinition, grpc)
          .echo({}, options)
          .finally(() => grpc.close());
      },
    ],
  ];
  test.each(calls)('of %s: an unknown name is refused with the nearest known name', async (_, call) => {
    await expect(call({ timeoutMS: 50 })).rejects.toThrow(
      /options of a call: there is no option timeoutMS; did you mean timeoutMs\?/,
    );
    expect(started).not.toHaveBeenCalled();
  });

  const wrong: [string, unknown, RegExp][] = [
    ['no object', 5, /the options of a call must be an object/],
    ['null', null, /the options of a call must be an object/],
    [
      'a controller for a signal',
      { signal: new AbortController() },
      /signal is not an AbortSignal.*controller\.signal/,
    ],
    ['an object for a signal', { signal: { aborted: false } }, /signal is not an AbortSignal/],
    ['null for a signal', { signal: null }, /signal is not an AbortSignal/],
    ['a text for a signal', { signal: 'x' }, /signal is not an AbortSignal/],
    ['a number for onHeader', { onHeader: 5 }, /onHeader is not a function/],
    ['a text for onTrailer', { onTrailer: 'x' }, /onTrailer is not a function/],
    ['an object for a context', { context: {} }, /context is not the context of a handler/],
    ['null for a context', { context: null }, /context is not the context of a handler/],
  ];
  describe.each(wrong)('%s', (_, options, text) => {
    test.each(calls)('rejects %s, and sends nothing', async (_name, call) => {
      let result: Promise<unknown> | undefined;
      expect(() => {
        result = call(options as object);
      }).not.toThrow();
      const error: unknown = await result!.catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(TypeError);
      expect((error as Error).message).toMatch(text);
      expect(started).not.toHaveBeenCalled();
    });
  });

  test.each(['addEventListener', 'removeEventListener'] as const)(
    'a signal of another library whose %s throws affects only its own call, whether it waits or not',
    async (name) => {
      const signal = Object.assign(new EventTarget(), {
        aborted: false,
        reason: undefined,
        [name]: () => {
          throw new Error('on purpose');
        },
      });
      const client = createClient(EchoDefinition, channel);
      // There are more calls than the window allows, so some calls of both kinds wait, and are sent from the
      // queue while a batch of events is handled.
      const all = Array.from({ length: 700 }, (_, number) =>
        client.echo({ number }, number % 2 === 0 ? {} : ({ signal } as never)).then(
          (answer) => answer.number,
          (error: unknown) => RpcError.from(error).code,
        ),
      );
      const ends = await Promise.all(all);
      const other = name === 'addEventListener' ? () => Status.CANCELLED : (number: number) => number;
      expect(ends).toEqual(ends.map((_, number) => (number % 2 === 0 ? number : other(number))));
      expect(channel.state).toBe('ready');
    },
  );

  test('all known options are accepted', async () => {
    const options = {
      timeoutMs: 60_000,
      metadata: {},
      values: undefined,
      retry: false,
      waitForReady: true,
    } as const;
    expect(await createClient(EchoDefinition, channel).echo({ number: 4 }, options)).toMatchObject({
      number: 4,
    });
  });
});

describe('names of handlers', () => {
  const adds: [string, (handlers: object, told: string[]) => Server | object][] = [
    [
      'a server',
      (handlers, told) => createServer({ log: (line) => told.push(line) }).add(EchoDefinition, handlers),
    ],
    [
      'a server of gRPC',
      (handlers, told) => {
        const warn = vi
          .spyOn(process, 'emitWarning')
          .mockImplementation((text) => void told.push(String(text)));
        toGrpcJsHandlers(EchoDefinition, handlers);
        warn.mockRestore();
        return handlers;
      },
    ],
  ];
  class Typed {
    helper(): void {}
    fetchs(): object {
      return {};
    }
    get throwing(): never {
      throw new Error('a getter was run');
    }
  }
  const handler = () => ({});
  const all = Object.fromEntries(Object.keys(EchoDefinition.methods).map((name) => [name, handler]));
  const cases: [string, object, RegExp[]][] = [
    [
      'a slip',
      { ehco: handler },
      [/test\.echo\.Echo: a handler is called ehco, and there is no such method; did you mean echo\?/],
    ],
    ['upper case', { Echo: handler }, [/did you mean echo\?/]],
    [
      'something else',
      { hail: handler, count: 5 },
      [/is called hail, .*; methods without a handler are echo, /],
    ],
    ['a slip in a class, but no helper', new Typed(), [/is called fetchs, .*did you mean fetch\?/]],
    ['helpers beside handlers of all methods', { ...all, helper: handler }, []],
    ['no handler at all', {}, []],
    ['an object without a prototype', Object.assign(Object.create(null), { echo: handler }), []],
  ];
  test.each(adds.flatMap(([where, add]) => cases.map((each) => [where, ...each, add] as const)))(
    'on %s: %s',
    (_, _what, handlers, texts, add) => {
      const told: string[] = [];
      add(handlers, told);
      expect(told).toHaveLength(texts.length);
      for (const [i, text] of texts.entries()) expect(told[i]).toMatch(text);
    },
  );
});
