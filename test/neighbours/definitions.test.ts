/**
 * Tests that generated definitions are definitions for nice-grpc and grpc-js without changes. The definitions
 * are typed, and need no cast and no other part of this package.
 */
import {
  credentials,
  Server as GrpcJsServer,
  type ServiceDefinition as GrpcJsServiceDefinition,
  loadPackageDefinition,
  makeClientConstructor,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
} from '@grpc/grpc-js';
import {
  type CallContext,
  createChannel as createNiceGrpcChannel,
  createClient as createNiceGrpcClient,
  createServer as createNiceGrpcServer,
  type ServiceImplementation,
} from 'nice-grpc';
import { createClient, createInProcessChannel, type HandlerContext } from 'rdma-rpc';
import { defineService, method } from 'rdma-rpc/msgpack';
import { describe, expect, test } from 'vitest';
import { type Item, type ItemInit, type Order, StreamsDefinition } from '../stream/gen/stream.rdma.ts';

/** The common part of both contexts. */
type SharedContext = Pick<HandlerContext & CallContext, 'signal'> & {
  readonly peer: HandlerContext['peer'] | CallContext['peer'];
};

/** Both servers use this one object. */
const handlers = {
  async unary({ text }: Order, { signal, peer }: SharedContext): Promise<ItemInit> {
    return { text: `${text} ${signal.aborted} ${typeof String(peer)}` };
  },
  async *count({ count }: Order): AsyncGenerator<ItemInit, void> {
    for (let number = 0; number < count; ++number) yield { number };
  },
  async sum(items: AsyncIterable<Item>): Promise<ItemInit> {
    let number = 0;
    for await (const item of items) number += item.number;
    return { number };
  },
  async *echo(items: AsyncIterable<Item>): AsyncGenerator<ItemInit, void> {
    yield* items;
  },
};

async function* items(...numbers: number[]): AsyncGenerator<ItemInit> {
  for (const number of numbers) yield { number };
}
async function numbers(messages: AsyncIterable<Item>): Promise<number[]> {
  const seen: number[] = [];
  for await (const { number } of messages) seen.push(number);
  return seen;
}

const { unary, count, sum, echo } = StreamsDefinition.methods;
/** A part of the service for which every method has a handler, as the types of nice-grpc require. */
const PartDefinition = { ...StreamsDefinition, methods: { unary, count, sum, echo } };

test('the same object serves both packages', async () => {
  const server = createNiceGrpcServer();
  const implementation: ServiceImplementation<typeof PartDefinition> = handlers;
  server.add(PartDefinition, implementation);
  const port = await server.listen('127.0.0.1:0');
  const theirs = createNiceGrpcChannel(`127.0.0.1:${port}`);
  const ours = createInProcessChannel((each) => each.add(PartDefinition, handlers));

  const clients = [
    createClient(PartDefinition, ours),
    createNiceGrpcClient(PartDefinition, theirs),
    // This is a definition for grpc-js, which nice-grpc accepts too.
    createNiceGrpcClient(PartDefinition.methods, theirs),
  ];
  for (const client of clients) {
    expect((await client.unary({ text: 'a' })).text).toBe('a false string');
    expect(await numbers(client.count({ count: 3 }))).toEqual([0, 1, 2]);
    expect((await client.sum(items(40, 2))).number).toBe(42);
    expect(await numbers(client.echo(items(1, 2)))).toEqual([1, 2]);
  }
  theirs.close();
  await server.shutdown();
  await ours.close();
});

test('wrong code does not compile', () => {
  const never = (): boolean => false;
  if (never()) {
    const client = createNiceGrpcClient(StreamsDefinition, createNiceGrpcChannel('127.0.0.1:1'));
    // @ts-expect-error a number is no text
    void client.unary({ text: 5 });
    // @ts-expect-error it takes a stream
    void client.sum({ number: 1 });
    // @ts-expect-error there is no such method
    void client.other({});
  }
  const definition: GrpcJsServiceDefinition = StreamsDefinition.methods;
  expect(Object.keys(definition)).toContain('unary');
});

test('a server and a client of grpc-js accept the generated definition', async () => {
  const server = new GrpcJsServer();
  server.addService(StreamsDefinition.methods, {
    unary: ({ request }: ServerUnaryCall<Order, ItemInit>, callback: sendUnaryData<ItemInit>) =>
      callback(null, { text: request.text, payload: request.payload }),
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const Streams = makeClientConstructor(StreamsDefinition.methods, StreamsDefinition.fullName);
  const client = new Streams(`127.0.0.1:${port}`, credentials.createInsecure());
  const payload = new Uint8Array([1, 2]);
  const answer = await new Promise((resolve, reject) => {
    client.unary!({ text: 'a', payload }, (error: Error | null, response: Item) =>
      error === null ? resolve(response) : reject(error),
    );
  });
  expect(answer).toEqual({ number: 0, text: 'a', payload });
  client.close();
  server.forceShutdown();
});

test('loadPackageDefinition of grpc-js accepts the generated methods', () => {
  const loaded = loadPackageDefinition({ [StreamsDefinition.fullName]: StreamsDefinition.methods });
  expect(loaded).toHaveProperty('test.stream.Streams.serviceName', 'Streams');
});

describe('the forms', () => {
  test('grpc-js', () => {
    expect(count.path).toBe('/test.stream.Streams/Count');
    expect(count.name).toBe('Count');
    expect(count).toMatchObject({ requestStream: false, responseStream: true, options: {} });
    const { requestSerialize, requestDeserialize, responseSerialize, responseDeserialize } = count;
    expect(requestSerialize({ count: 3 })).toEqual(Buffer.from([8, 3]));
    expect(requestDeserialize(Buffer.from([8, 3])).count).toBe(3);
    expect(responseSerialize({ number: 3 })).toBeInstanceOf(Buffer);
    expect(responseDeserialize(new Uint8Array([8, 3])).number).toBe(3);
  });

  test('ts-proto', () => {
    const { encode, decode, fromPartial } = unary.requestType;
    expect(encode(fromPartial({ count: 3 })).finish()).toEqual(new Uint8Array([8, 3]));
    expect(decode(new Uint8Array([8, 3])).count).toBe(3);
    expect(unary.responseType.fromPartial({})).toEqual({ number: 0, text: '', payload: new Uint8Array(0) });
  });

  test('are made when they are read', () => {
    expect(Object.keys(unary)).toEqual([
      'fullName',
      'id',
      'input',
      'requestStream',
      'output',
      'responseStream',
      'options',
      'preferred',
    ]);
  });
});

test('exist for services without a schema, too', async () => {
  const Room = defineService({ name: 'chat.Room', methods: { say: method<{ text: string }, number>() } });
  const server = createNiceGrpcServer();
  server.add(Room, { say: async ({ text }) => text.length });
  const port = await server.listen('127.0.0.1:0');
  const channel = createNiceGrpcChannel(`127.0.0.1:${port}`);
  expect(await createNiceGrpcClient(Room, channel).say({ text: 'four' })).toBe(4);
  channel.close();
  await server.shutdown();
});
