/** Names that nobody knows, in the options of a call and among handlers: JavaScript says nothing about them, so the library does. */
import { Client, credentials } from '@grpc/grpc-js';
import { type Channel, createClient, createInProcessChannel, createServer, type Server } from 'rdma-rpc';
import { toGrpcJsHandlers } from 'rdma-rpc/grpc';
import { createGrpcClient } from 'rdma-rpc/grpc-client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { KnownPeer } from '../../runtime/core/peer.ts';
import { RpcPeer } from '../../runtime/reverse/peer.ts';
import { RpcPeers } from '../../runtime/reverse/peers.ts';
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
      'a call to a client',
      (options) => new RpcPeers().client(EchoDefinition, new RpcPeer(new KnownPeer('x'))).echo({}, options),
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
  test.each(calls)(
    'of %s: a name that nobody knows is refused, with the one that was meant',
    async (_, call) => {
      await expect(call({ timeoutMS: 50 })).rejects.toThrow(
        /options of a call: there is no option timeoutMS; did you mean timeoutMs\?/,
      );
      expect(started).not.toHaveBeenCalled();
    },
  );

  test('all that there are are taken', async () => {
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
      { greet: handler, count: 5 },
      [/is called greet, .*; methods without a handler are echo, /],
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
