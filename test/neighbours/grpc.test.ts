/** The same definition and the same handlers over real gRPC: a nice-grpc server, with clients of nice-grpc and of grpc-js. */
import { credentials, makeGenericClientConstructor, type ServiceError } from '@grpc/grpc-js';
import {
  Metadata as GrpcMetadata,
  createChannel as grpcChannel,
  createClient as grpcClient,
  createServer as grpcServer,
} from 'nice-grpc';
import { createClient, createInProcessTransport, type HandlersOf, RpcError, Status } from 'rdma-rpc';
import { BadRequest } from 'rdma-rpc/details';
import { toGrpcDefinition, toGrpcImplementation } from 'rdma-rpc/grpc';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Item, StreamsDefinition } from '../stream/gen/stream.rdma.ts';

const handlers: Partial<HandlersOf<typeof StreamsDefinition>> = {
  unary: ({ text, payload }, { metadata, header, trailer }) => {
    header.set('x-header', 'ahead');
    trailer.set('x-trailer', String(metadata.get('x-asked') ?? 'nobody'));
    if (text === 'secret') throw new Error('a secret');
    if (text === 'missing')
      throw new RpcError(Status.NOT_FOUND, 'no such thing', {
        details: [{ type: BadRequest, value: { fieldViolations: [{ field: 'text' }] } }],
      });
    return { text, payload };
  },
  *count({ count }) {
    for (let number = 0; number < count; ++number) yield { number };
  },
  async sum(items) {
    let number = 0;
    for await (const item of items) number += item.number;
    return { number };
  },
  async *echo(items) {
    for await (const item of items) yield item;
  },
  behave: (_, { signal }) =>
    (async function* () {
      yield { text: 'begun' };
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      aborted();
    })(),
};
let aborted: () => void = () => undefined;

const definition = toGrpcDefinition(StreamsDefinition);
const numbers = async (items: AsyncIterable<Item>) => {
  const seen: number[] = [];
  for await (const { number } of items) seen.push(number);
  return seen;
};

const server = grpcServer();
let address = '';
beforeAll(async () => {
  server.add(definition, toGrpcImplementation(StreamsDefinition, handlers));
  address = `127.0.0.1:${await server.listen('127.0.0.1:0')}`;
});
afterAll(() => server.forceShutdown());

describe('a client of nice-grpc', () => {
  const open = () => {
    const channel = grpcChannel(address);
    return { client: grpcClient(definition, channel), close: () => channel.close() };
  };

  test('has what a client of ours has', async () => {
    const { client, close } = open();
    const ours = createInProcessTransport((s) => s.add(StreamsDefinition, handlers));
    for (const each of [client, createClient(StreamsDefinition, ours)] as ReturnType<
      typeof open
    >['client'][]) {
      const payload = new Uint8Array(1000).fill(3);
      expect(await each.unary({ text: 'a', payload })).toEqual({ number: 0, text: 'a', payload });
      expect(await numbers(each.count({ count: 5 }))).toEqual([0, 1, 2, 3, 4]);
      const items = async function* () {
        yield* [{ number: 1 }, { number: 2 }, { number: 39 }];
      };
      expect((await each.sum(items())).number).toBe(42);
      expect(await numbers(each.echo(items()))).toEqual([1, 2, 39]);
    }
    close();
    await ours.close();
  });

  test('header, trailer and metadata', async () => {
    const { client, close } = open();
    const seen: unknown[] = [];
    await client.unary(
      {},
      {
        metadata: new GrpcMetadata({ 'x-asked': 'Ada' }),
        onHeader: (header) => seen.push(header.get('x-header')),
        onTrailer: (trailer) => seen.push(trailer.get('x-trailer')),
      },
    );
    expect(seen).toEqual(['ahead', 'Ada']);
    close();
  });

  test.each([
    ['missing', Status.NOT_FOUND, 'no such thing'],
    ['secret', Status.INTERNAL, 'test.stream.Streams/Unary: the handler failed'],
  ])('errors: %s', async (text, code, details) => {
    const { client, close } = open();
    await expect(client.unary({ text })).rejects.toMatchObject({ code, details });
    close();
  });

  test('a method without a handler is UNIMPLEMENTED', async () => {
    const { client, close } = open();
    await expect(numbers(client.missing((async function* () {})()))).rejects.toMatchObject({
      code: Status.UNIMPLEMENTED,
    });
    close();
  });

  test('cancelling reaches the handler', async () => {
    const { client, close } = open();
    const seen = new Promise<void>((resolve) => {
      aborted = resolve;
    });
    for await (const { text } of client.behave({})) {
      expect(text).toBe('begun');
      break;
    }
    await seen;
    close();
  });
});

test('a client of grpc-js, made of the same definition', async () => {
  const Client = makeGenericClientConstructor(definition, 'Streams');
  const client = new Client(address, credentials.createInsecure());
  const call = (request: object) =>
    new Promise<unknown>((resolve, reject) => {
      client.unary!(request, (error: ServiceError | null, response: unknown) =>
        error === null ? resolve(response) : reject(error),
      );
    });
  expect(await call({ text: 'a' })).toMatchObject({ text: 'a' });
  const error = (await call({ text: 'missing' }).catch((e: unknown) => e)) as ServiceError;
  expect(error).toMatchObject({ code: Status.NOT_FOUND, details: 'no such thing' });
  expect(error.metadata.get('grpc-status-details-bin')).toHaveLength(1);
  const seen: number[] = [];
  for await (const { number } of client.count!({ count: 3 }) as AsyncIterable<Item>) seen.push(number);
  expect(seen).toEqual([0, 1, 2]);
  client.close();
});

test('the definition in the form of gRPC', () => {
  expect(definition.count).toMatchObject({
    path: '/test.stream.Streams/Count',
    requestStream: false,
    responseStream: true,
    originalName: 'count',
    options: {},
  });
  expect(definition.unary.requestSerialize({ text: 'a' })).toBeInstanceOf(Buffer);
});
