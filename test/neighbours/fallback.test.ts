/**
 * Tests gRPC as the drop-in fallback. One application, written against the generated client, runs over a
 * channel of ours and over grpc-js with the same result. Code that uses only the common part of all clients
 * also runs with the clients of nice-grpc and connect-es.
 */
import { create, createFileRegistry, fromBinary, type Message } from '@bufbuild/protobuf';
import type { GenMessage, GenService } from '@bufbuild/protobuf/codegenv2';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { type Client as ConnectClient, createClient as createConnectClient } from '@connectrpc/connect';
import { credentials, Client as GrpcClient, Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';
import {
  createChannel as createNiceChannel,
  createClient as createNiceClient,
  type Client as NiceClient,
} from 'nice-grpc';
import {
  type CallOptions,
  type Client,
  type ClientDefaults,
  createClient,
  createInProcessChannel,
  type Interceptor,
  type Metadata,
  type PortableClient,
  RpcError,
  Status,
} from 'rdma-rpc';
import { createConnectTransport } from 'rdma-rpc/connect';
import { BadRequest } from 'rdma-rpc/details';
import { createGrpcClient } from 'rdma-rpc/grpc/client';
import { toGrpcJsHandlers } from 'rdma-rpc/grpc/server';
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import type { FileDescriptor } from '../../runtime/codec/file-descriptor.ts';
import { type ItemInit, StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { handlers, witnessed } from './fallback-handlers.ts';

type Streams = Client<typeof StreamsDefinition>;

async function* items(...numbers: number[]): AsyncGenerator<ItemInit> {
  for (const number of numbers) yield { number };
}

/** Returns metadata as text, without entries that only one of the transports sends. */
const texts = (metadata: Metadata | undefined): string[] =>
  [...(metadata ?? [])].map(([key, value]) => `${key}=${typeof value === 'string' ? value : [...value]}`);

/** Returns a result as a line of text. */
function line(result: unknown): string {
  if (!(result instanceof Error)) {
    const { number, text, payload } = result as { number: number; text: string; payload: Uint8Array };
    return `${number} ${text} ${payload.length}`;
  }
  if (!(result instanceof RpcError)) return result.message;
  const details = result.findDetails(BadRequest).map(({ fieldViolations: [first] }) => first?.description);
  return [result.codeName, ...details, ...texts(result.trailer)].join(' ');
}

async function outcome(call: Promise<unknown> | AsyncIterable<unknown>): Promise<string> {
  try {
    if (!(Symbol.asyncIterator in call)) return line(await call);
    for await (const _ of call);
    return 'all';
  } catch (error) {
    return line(error);
  }
}

type Make = (defaults?: ClientDefaults<typeof StreamsDefinition>) => Streams;
let overUs: Make;
let overGrpc: Make;
let grpcPort = 0;
const close: (() => unknown)[] = [];

beforeAll(async () => {
  const channel = createInProcessChannel((server) => server.add(StreamsDefinition, handlers));
  overUs = (defaults) => createClient(StreamsDefinition, channel, defaults);
  const server = new GrpcServer();
  server.addService(StreamsDefinition.methods, toGrpcJsHandlers(StreamsDefinition, handlers));
  grpcPort = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const client = new GrpcClient(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
  overGrpc = (defaults) => createGrpcClient(StreamsDefinition, client, defaults);
  close.push(
    () => client.close(),
    () => server.forceShutdown(),
    () => channel.close(),
  );
});
afterAll(async () => {
  for (const each of close) await each();
});

/** Runs an application that uses all kinds of calls, all options, notifications and errors. */
async function application(make: Make): Promise<unknown> {
  witnessed.heard = [];
  witnessed.failures = 0;
  const client = make();
  const told: string[] = [];
  const listeners = (): CallOptions => ({
    onHeader: (header) => told.push(...texts(header)),
    onTrailer: (trailer) => told.push(...texts(trailer)),
  });
  const results: string[] = [];
  const payload = new Uint8Array(300_000).fill(7);
  const metadata = { 'x-text': 'a', 'x-raw-bin': Uint8Array.of(1, 200) };
  results.push(await outcome(client.unary({ text: 'a', payload }, { metadata, ...listeners() })));
  results.push(await outcome(client.unary({ text: 'limit' }, { timeoutMs: 60_000 })));

  const counted: number[] = [];
  for await (const { number } of client.count({ count: 500 }, listeners())) counted.push(number);
  results.push(`counted ${counted.length}`);
  results.push(await outcome(client.sum(items(40, 2))), await outcome(client.sum([{ number: 1 }])));
  const echoed: number[] = [];
  for await (const { number } of client.echo(items(1, 2, 3))) echoed.push(number);
  results.push(`echoed ${echoed}`);
  for await (const { number } of client.count({ count: 1_000_000, text: 'slow' })) if (number === 3) break;
  await expect.poll(() => witnessed.heard).toContain('count');

  results.push(await outcome(client.unary({ text: 'missing' }, listeners())));
  results.push(await outcome(client.count({ count: 2, text: 'fail' })));
  results.push(await outcome(client.missing([])));
  results.push(await outcome(client.unary({ text: 'hang' }, { timeoutMs: 50 })));
  results.push(await outcome(client.hold(items(1), { timeoutMs: 50 })));
  const early = AbortSignal.abort(new Error('never mind'));
  results.push(await outcome(client.unary({}, { signal: early })));
  const controller = new AbortController();
  const hanging = outcome(client.unary({ text: 'hang' }, { signal: controller.signal }));
  setTimeout(() => controller.abort(new Error('enough')), 30);
  results.push(await hanging);
  await expect.poll(() => witnessed.heard.filter((each) => each === 'hang').length).toBe(2);

  results.push(await outcome(client.unary({ text: 5 as never })));
  results.push(await outcome(client.sum([{ number: 'x' as never }])));
  const wrong = new Error('no more requests');
  const broken = async function* (): AsyncGenerator<ItemInit> {
    yield { number: 1 };
    throw wrong;
  };
  await expect(client.sum(broken())).rejects.toBe(wrong);
  results.push(await outcome(client.count({}, { retry: {} } as never)));
  let ended = false;
  const endless = async function* (): AsyncGenerator<ItemInit> {
    try {
      for (let number = 0; ; ++number) yield { number };
    } finally {
      ended = true;
    }
  };
  for await (const { number } of client.echo(endless())) if (number === 2) break;
  await expect.poll(() => ended).toBe(true);
  results.push(String(await client.note({ text: 'x' })));
  await expect.poll(() => witnessed.heard).toContain('note x');

  const seen: string[] = [];
  const watch: Interceptor = (next) => async (request) => {
    request.metadata.set('x-by', 'interceptor');
    const response = await next(request);
    seen.push(`${request.method.name} ${request.stream} ${response.header.get('x-header')}`);
    return response;
  };
  const other = make({
    '*': { interceptors: [watch], metadata: { 'x-all': '1' } },
    unary: { timeoutMs: 40 },
  });
  results.push(await outcome(other.unary({ text: 'b' }, { timeoutMs: 60_000, ...listeners() })));
  results.push(await outcome(other.unary({ text: 'hang' })));
  results.push(await outcome(other.count({ count: 3 })), ...seen);
  return { results, told };
}

describe('the same application over rdma-rpc and over gRPC', () => {
  test('has the same outcome', async () => {
    const ours = await application(overUs);
    expect(ours).toEqual({
      results: [
        '0 a 300000',
        '1  0',
        'counted 500',
        '42  0',
        '1  0',
        'echoed 1,2,3',
        'NOT_FOUND gone x-trailer=',
        'DATA_LOSS x-trailer=behind',
        'UNIMPLEMENTED',
        'DEADLINE_EXCEEDED',
        'DEADLINE_EXCEEDED',
        'CANCELLED',
        'CANCELLED',
        'INTERNAL',
        'INTERNAL',
        'test.stream.Streams/Count: a stream takes no `retry`',
        'undefined',
        '0 b 0',
        'DEADLINE_EXCEEDED',
        'all',
        'Unary false ahead',
        'Count true undefined',
      ],
      told: [
        'x-header=ahead',
        'x-bytes-bin=0,255',
        'x-trailer=x-raw-bin=2 x-text=1',
        'x-header=ahead',
        'x-trailer=behind',
        'x-header=ahead',
        'x-bytes-bin=0,255',
        'x-trailer=',
        'x-header=ahead',
        'x-bytes-bin=0,255',
        'x-trailer=x-all=1 x-by=11',
      ],
    });
    expect(await application(overGrpc)).toEqual(ours);
  });

  test('repeats calls where the method allows it', async () => {
    const { unary } = StreamsDefinition.methods;
    const idempotent = Object.assign(Object.create(unary) as typeof unary, {
      options: { idempotencyLevel: 'IDEMPOTENT' },
    });
    const client = new GrpcClient(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
    const { unary: call } = createGrpcClient(
      { ...StreamsDefinition, methods: { unary: idempotent } },
      client,
    );
    witnessed.failures = 0;
    const retry = { attemptsMax: 3, backoffMs: 1 };
    expect((await call({ text: 'flaky', count: 2 }, { retry })).text).toBe('flaky');
    witnessed.failures = 0;
    expect(await outcome(call({ text: 'flaky', count: 9 }, { retry }))).toMatch(/^UNAVAILABLE/);
    expect(witnessed.failures).toBe(3);
    client.close();
  });

  test('gets an error without a server, and waits for a server on request', async () => {
    const client = new GrpcClient('127.0.0.1:1', credentials.createInsecure());
    const { unary } = createGrpcClient(StreamsDefinition, client);
    expect(await outcome(unary({}))).toMatch(/^UNAVAILABLE/);
    expect(await outcome(unary({}, { waitForReady: true, timeoutMs: 60 }))).toMatch(/^DEADLINE_EXCEEDED/);
    client.close();
    // grpc-js then throws an error of its own.
    expect(await outcome(unary({}))).toMatch(/^UNAVAILABLE/);
  });

  test('a listener that throws fails the call', async () => {
    for (const make of [overUs, overGrpc]) {
      const onTrailer = () => {
        throw new Error('cannot take it');
      };
      const error = await make()
        .unary({}, { onTrailer })
        .catch((reason: unknown) => reason);
      expect(error).toMatchObject({
        code: Status.INTERNAL,
        message: expect.stringContaining('cannot take it'),
      });
    }
  });

  test('values that gRPC cannot carry, and arguments that are not clients, are refused at once', async () => {
    const metadata = { 'x-text': 'grüß' };
    await expect(overGrpc().unary({}, { metadata })).rejects.toThrow(/put other text under a -bin key/);
    expect(() => createGrpcClient(StreamsDefinition, '127.0.0.1:1' as never)).toThrow(
      /second argument must be a client of grpc-js/,
    );
    expect(() => overGrpc({ uanry: {} } as never)).toThrow(/did you mean unary/);
    expect(() => overGrpc({ unary: { timeout: 5 } } as never)).toThrow(/did you mean timeoutMs/);
  });
});

// --- what all clients have

type EsOrder = Message<'test.stream.Order'> & {
  count: number;
  bytes: number;
  text: string;
  payload: Uint8Array;
};
type EsItem = Message<'test.stream.Item'> & { number: number; text: string; payload: Uint8Array };
type OrderSchema = GenMessage<EsOrder>;
type ItemSchema = GenMessage<EsItem>;
/** The type that protoc-gen-es declares. */
type EsStreams = GenService<{
  unary: { methodKind: 'unary'; input: OrderSchema; output: ItemSchema };
  count: { methodKind: 'server_streaming'; input: OrderSchema; output: ItemSchema };
  sum: { methodKind: 'client_streaming'; input: ItemSchema; output: ItemSchema };
  echo: { methodKind: 'bidi_streaming'; input: ItemSchema; output: ItemSchema };
}>;
const { unary, count, sum, echo } = StreamsDefinition.methods;
const PartDefinition = { ...StreamsDefinition, methods: { unary, count, sum, echo } };
type Portable = PortableClient<typeof PartDefinition>;

function esService(file: FileDescriptor): EsStreams {
  const files = new Map<string, FileDescriptor>();
  const visit = (each: FileDescriptor): void => {
    for (const dependency of each.dependencies) visit(dependency);
    files.set(each.name, each);
  };
  visit(file);
  const protos = [...files.values()].map(({ bytes }) => fromBinary(FileDescriptorProtoSchema, bytes));
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: protos }));
  return registry.getService(StreamsDefinition.fullName) as unknown as EsStreams;
}

describe('clients of all kinds', () => {
  test('can be assigned to the portable client', () => {
    expectTypeOf<Client<typeof PartDefinition>>().toExtend<Portable>();
    expectTypeOf<NiceClient<typeof PartDefinition>>().toExtend<Portable>();
    expectTypeOf<ConnectClient<EsStreams>>().toExtend<Portable>();
    // The types of another service are not accepted.
    expectTypeOf<Omit<NiceClient<typeof PartDefinition>, 'sum'>>().not.toExtend<Portable>();
  });

  test('run the same code', async () => {
    async function run(client: Portable): Promise<unknown> {
      const { signal } = new AbortController();
      const numbers: number[] = [];
      for await (const { number } of client.count({ count: 3 }, { signal })) numbers.push(number);
      for await (const { number } of client.echo(items(7))) numbers.push(number);
      const failed = await client.unary({ text: 'missing' }).catch((error: { code: number }) => error.code);
      return [
        (await client.unary({ text: 'a' })).text,
        (await client.sum(items(40, 2))).number,
        numbers,
        failed,
      ];
    }
    const Streams = esService(StreamsDefinition.file);
    const channel = createInProcessChannel((server) => server.add(StreamsDefinition, handlers));
    const nice = createNiceChannel(`127.0.0.1:${grpcPort}`);
    const grpc = new GrpcClient(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
    const clients: Portable[] = [
      createClient(PartDefinition, channel),
      createGrpcClient(PartDefinition, grpc),
      createNiceClient(PartDefinition, nice),
      createConnectClient(Streams, createConnectTransport(channel)),
    ];
    for (const client of clients)
      expect(await run(client)).toEqual(['a', 42, [0, 1, 2, 7], Status.NOT_FOUND]);
    nice.close();
    grpc.close();
    await channel.close();
  });
});
