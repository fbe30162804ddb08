/**
 * Runs one service, with handlers written for this package, on servers of real gRPC. The tests beside it use
 * it.
 */
import { Server as GrpcJsServer, ServerCredentials } from '@grpc/grpc-js';
import { createServer as createNiceGrpcServer } from 'nice-grpc';
import { type Handlers, RpcError, Status } from 'rdma-rpc';
import { BadRequest } from 'rdma-rpc/details';
import { type GrpcHandlerOptions, toGrpcJsHandlers, toNiceGrpcHandlers } from 'rdma-rpc/grpc/server';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';

export type TestHandlers = Partial<Handlers<typeof StreamsDefinition>>;

/** The requests that handlers have seen, and the tests that wait for requests. */
export class Seen {
  readonly errors: [unknown, string][] = [];
  readonly notes: string[] = [];
  readonly #aborted: unknown[] = [];
  #wake: () => void = () => undefined;

  abort(reason: unknown): void {
    this.#aborted.push(reason);
    this.#wake();
  }

  note(text: string): void {
    this.notes.push(text);
    this.#wake();
  }

  /** Resolves to the reason of the next signal that fires in a handler. */
  async aborted(): Promise<unknown> {
    await this.until(() => this.#aborted.length > 0);
    return this.#aborted.shift();
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition())
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }
}

export function handlersThat(seen: Seen): TestHandlers {
  const untilAborted = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        seen.abort(signal.reason);
        resolve();
      };
      if (signal.aborted) done();
      else signal.addEventListener('abort', done);
    });
  return {
    unary: async ({ text, payload }, context) => {
      const { method, metadata, header, trailer, signal, timeoutMs, peer } = context;
      const sendHeader = (): void => context.sendHeader();
      header.set('x-header', 'ahead');
      header.set('x-bytes-bin', new Uint8Array([0, 255]));
      trailer.set('x-trailer', String(metadata.get('x-asked') ?? 'nobody'));
      switch (text) {
        case 'secret':
          throw new Error('a secret');
        case 'missing':
          throw new RpcError(Status.NOT_FOUND, 'no such thing: \u00e9 \ud83d\ude80', {
            details: [{ type: BadRequest, value: { fieldViolations: [{ field: 'text' }] } }],
          });
        case 'half a pair':
          throw new RpcError(Status.NOT_FOUND, '\ud83d');
        case 'bad header':
          header.set('x-header', 'h\u00e9');
          return {};
        case 'bad trailer':
          trailer.set('x-trailer', 'h\u00e9');
          throw new RpcError(Status.ABORTED, 'no more');
        case 'nothing':
          return undefined as never;
        case 'wrong':
          return { number: 'five' } as never;
        case 'count the metadata':
          return { number: [...metadata].filter(([key]) => key.startsWith('x-many-')).length };
        case 'header twice':
          header.set('x-header', 'first');
          sendHeader();
          header.set('x-header', 'second');
          return {};
        case 'many trailers':
          throw new RpcError(Status.ABORTED, 'no more', {
            trailer: Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`x-many-${i}`, 'v'])),
          });
        case 'hang':
          await untilAborted(signal);
          return {};
        case 'context': {
          const known = [method, typeof timeoutMs, /\d+$/.test(String(peer)), signal.aborted];
          return { text: known.join(' ') };
        }
        default:
          return { text, payload };
      }
    },
    *count({ count, bytes }, { header, trailer }) {
      header.set('x-header', 'ahead');
      trailer.set('x-trailer', 'behind');
      let number = 0;
      try {
        for (; number < count; ++number) yield { number, payload: new Uint8Array(bytes) };
      } finally {
        if (number < count) seen.note('left');
      }
    },
    async sum(items) {
      let number = 0;
      for await (const item of items) number += item.number;
      return { number };
    },
    async *echo(items) {
      for await (const item of items) yield item;
    },
    async *first(items) {
      for await (const item of items) {
        yield item;
        break;
      }
      yield { number: 42 };
    },
    async *behave({ text }, context) {
      if (text === 'header') {
        context.header.set('x-header', 'now');
        context.sendHeader();
        await untilAborted(context.signal);
        return;
      }
      yield { text: 'begun' };
      if (text === 'wrong') yield { number: 'five' } as never;
      if (text === 'fail') throw new RpcError(Status.DATA_LOSS, 'half way');
      await untilAborted(context.signal);
    },
    async *talk(items) {
      try {
        for await (const item of items) yield item;
      } catch (error) {
        seen.abort(error);
        throw error;
      }
    },
    note({ text }) {
      seen.note(text);
      if (text === 'fail') throw new RpcError(Status.ABORTED, 'nobody hears this');
    },
  };
}

export interface Running {
  readonly address: string;
  stop(): void;
}
type Start = (handlers: TestHandlers, options: GrpcHandlerOptions) => Promise<Running>;

export const servers: Readonly<Record<'nice-grpc' | 'grpc-js', Start>> = {
  'nice-grpc': async (handlers, options) => {
    const server = createNiceGrpcServer();
    server.add(StreamsDefinition, toNiceGrpcHandlers(StreamsDefinition, handlers, options));
    const port = await server.listen('127.0.0.1:0');
    return { address: `127.0.0.1:${port}`, stop: () => server.forceShutdown() };
  },
  'grpc-js': async (handlers, options) => {
    const server = new GrpcJsServer();
    server.addService(StreamsDefinition.methods, toGrpcJsHandlers(StreamsDefinition, handlers, options));
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    return { address: `127.0.0.1:${port}`, stop: () => server.forceShutdown() };
  },
};
