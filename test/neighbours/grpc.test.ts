/**
 * Tests handlers written for this package on servers of real gRPC, called by real clients: both servers, and
 * clients of nice-grpc and of grpc-js.
 */
import {
  type ClientDuplexStream,
  credentials,
  Metadata as GrpcJsMetadata,
  makeClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import {
  type Client,
  type ClientError,
  createChannel as createNiceGrpcChannel,
  createClient as createNiceGrpcClient,
  Metadata as NiceGrpcMetadata,
} from 'nice-grpc';
import { RpcError, Status } from 'rdma-rpc';
import { BadRequest } from 'rdma-rpc/details';
import { toGrpcJsHandlers, toNiceGrpcHandlers } from 'rdma-rpc/grpc/server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Status as RpcStatus } from '../../runtime/details/gen/google/rpc/status.rdma.ts';
import { type Item, StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { handlersThat, type Running, Seen, servers } from './grpc-servers.ts';

async function* items(...numbers: number[]): AsyncGenerator<{ number: number }> {
  for (const number of numbers) yield { number };
}
async function numbers(messages: AsyncIterable<Item>): Promise<number[]> {
  const seen: number[] = [];
  for await (const { number } of messages) seen.push(number);
  return seen;
}
const caught = (call: Promise<unknown>): Promise<ClientError> =>
  call.then(
    () => expect.fail('the call went well'),
    (error: unknown) => error as ClientError,
  );

describe.each(Object.entries(servers))('a server of %s', (kind, start) => {
  const seen = new Seen();
  let server: Running;
  let client: Client<typeof StreamsDefinition>;
  let close: () => void;
  beforeAll(async () => {
    server = await start(handlersThat(seen), { onHandlerError: (...what) => seen.errors.push(what) });
    const channel = createNiceGrpcChannel(server.address);
    client = createNiceGrpcClient(StreamsDefinition, channel);
    close = () => channel.close();
  });
  afterAll(() => {
    close();
    server.stop();
  });

  test.each([0, 100, 100_000])('one request and one response with %d bytes arrive', async (bytes) => {
    const payload = new Uint8Array(bytes).fill(3);
    expect(await client.unary({ text: 'a', payload })).toEqual({ number: 0, text: 'a', payload });
  });

  test('streams of all kinds work', async () => {
    expect(await numbers(client.count({ count: 5 }))).toEqual([0, 1, 2, 3, 4]);
    expect((await client.sum(items(1, 2, 39))).number).toBe(42);
    expect((await client.sum(items())).number).toBe(0);
    expect(await numbers(client.echo(items(1, 2, 39)))).toEqual([1, 2, 39]);
    expect(await numbers(client.echo(items()))).toEqual([]);
  });

  test('a stream may have more bytes in flight than the buffers hold', async () => {
    let bytes = 0;
    for await (const { payload } of client.count({ count: 100, bytes: 50_000 })) bytes += payload.byteLength;
    expect(bytes).toBe(5_000_000);
  });

  test('a handler that stops reading can still answer', async () => {
    expect(await numbers(client.first(items(7, 8, 9)))).toEqual([7, 42]);
  });

  test('a response that cannot be sent is reported', async () => {
    seen.errors.length = 0;
    const error = await caught(client.unary({ text: 'wrong' }));
    expect([error.code, error.details]).toEqual([13, 'test.stream.Streams/Unary: the handler failed']);
    expect(await caught(numbers(client.behave({ text: 'wrong' })))).toMatchObject({ code: 13 });
    expect(seen.errors).toEqual([
      [expect.objectContaining({ message: expect.stringMatching(/number/) }), 'test.stream.Streams/Unary'],
      [expect.objectContaining({ message: expect.stringMatching(/number/) }), 'test.stream.Streams/Behave'],
    ]);
  });

  test('more entries of metadata may be sent than messages of this package may have', async () => {
    const metadata = new NiceGrpcMetadata();
    for (let i = 0; i < 100; ++i) metadata.set(`x-many-${i}`, 'v');
    expect((await client.unary({ text: 'count the metadata' }, { metadata })).number).toBe(100);
    let trailer = new NiceGrpcMetadata();
    const onTrailer = (given: NiceGrpcMetadata): void => {
      trailer = given;
    };
    await caught(client.unary({ text: 'many trailers' }, { onTrailer }));
    expect([...trailer].filter(([key]) => key.startsWith('x-many-'))).toHaveLength(60);
  });

  test('the header of a unary method is sent with its response, even when the handler sends it earlier', async () => {
    let header = new NiceGrpcMetadata();
    const onHeader = (given: NiceGrpcMetadata): void => {
      header = given;
    };
    await client.unary({ text: 'header twice' }, { onHeader });
    expect(header.getAll('x-header')).toEqual(['second']);
  });

  test('metadata, header and trailer arrive', async () => {
    const told: unknown[] = [];
    const options = {
      metadata: new NiceGrpcMetadata({ 'x-asked': 'Ada' }),
      onHeader: (header: NiceGrpcMetadata) => told.push(header.get('x-header'), header.get('x-bytes-bin')),
      onTrailer: (trailer: NiceGrpcMetadata) => told.push(trailer.get('x-trailer')),
    };
    await client.unary({}, options);
    expect(told.splice(0)).toEqual(['ahead', Buffer.from([0, 255]), 'Ada']);
    await numbers(client.count({ count: 1 }, options));
    expect(told.splice(0)).toEqual(['ahead', undefined, 'behind']);
    // Header and trailer must also arrive with an error.
    await caught(client.unary({ text: 'missing' }, options));
    expect(told).toEqual(['ahead', Buffer.from([0, 255]), 'Ada']);
  });

  test('sendHeader() sends the header before any message', async () => {
    const controller = new AbortController();
    let header: NiceGrpcMetadata | undefined;
    const options = {
      signal: controller.signal,
      onHeader: (given: NiceGrpcMetadata) => {
        header = given;
        controller.abort();
      },
    };
    await caught(numbers(client.behave({ text: 'header' }, options)));
    expect(header?.get('x-header')).toBe('now');
    await seen.aborted();
  });

  test('the context has the properties of the call', async () => {
    expect((await client.unary({ text: 'context' })).text).toBe(
      'test.stream.Streams/Unary function true false',
    );
  });

  test.each([
    ['missing', Status.NOT_FOUND, 'no such thing: \u00e9 \ud83d\ude80'],
    ['secret', Status.INTERNAL, 'test.stream.Streams/Unary: the handler failed'],
    ['half a pair', Status.NOT_FOUND, '\ufffd'],
    ['bad header', Status.INTERNAL, /header x-header: gRPC carries printable ASCII/],
    ['bad trailer', Status.ABORTED, 'no more'],
  ])('errors: %s', async (text, code, details) => {
    const error = await caught(client.unary({ text }));
    expect(error.code).toBe(code);
    expect(error.details).toMatch(details);
  });

  test('an invalid response fails only its own call', async () => {
    expect((await caught(client.unary({ text: 'nothing' }))).code).toBe(Status.INTERNAL);
    expect((await client.unary({ text: 'a' })).text).toBe('a');
  });

  test('onHandlerError gets all errors except RpcErrors', async () => {
    seen.errors.length = 0;
    await caught(client.unary({ text: 'missing' }));
    await caught(client.unary({ text: 'secret' }));
    expect(seen.errors).toEqual([[new Error('a secret'), 'test.stream.Streams/Unary']]);
  });

  test('an error in a stream arrives after its messages', async () => {
    const got: string[] = [];
    const error = await caught(
      (async () => {
        for await (const { text } of client.behave({ text: 'fail' })) got.push(text);
      })(),
    );
    expect(got).toEqual(['begun']);
    expect(error).toMatchObject({ code: Status.DATA_LOSS, details: 'half way' });
  });

  test('a method without a handler is UNIMPLEMENTED', async () => {
    const error = await caught(numbers(client.missing(items())));
    expect(error.code).toBe(Status.UNIMPLEMENTED);
  });

  test('a one-way method is answered, whatever its handler does', async () => {
    seen.notes.length = 0;
    expect(await client.note({ text: 'hello' })).toEqual({ number: 0, text: '', payload: new Uint8Array(0) });
    await client.note({ text: 'fail' });
    await seen.until(() => seen.notes.length === 2);
    expect(seen.notes).toEqual(['hello', 'fail']);
    while (!seen.errors.some(([error]) => error instanceof RpcError)) await new Promise(setImmediate);
  });

  test('leaving a stream ends its handler', async () => {
    for await (const { text } of client.behave({})) {
      expect(text).toBe('begun');
      break;
    }
    expect(await seen.aborted()).toMatchObject({ code: Status.CANCELLED });
  });

  test('leaving a stream whose handler waits for room ends its generator', async () => {
    seen.notes.length = 0;
    for await (const { number } of client.count({ count: 1000, bytes: 100_000 })) {
      expect(number).toBe(0);
      break;
    }
    await seen.until(() => seen.notes.length > 0);
    expect(seen.notes).toEqual(['left']);
  });

  test('a cancelled call reaches its handler', async () => {
    const controller = new AbortController();
    const call = client.unary({ text: 'hang' }, { signal: controller.signal }).catch(() => 'given up');
    // Makes another call on the same connection; its answer shows that the first call has arrived.
    await client.unary({});
    controller.abort();
    expect(await call).toBe('given up');
    expect(await seen.aborted()).toMatchObject({ code: Status.CANCELLED });
  });

  describe('a client of grpc-js', () => {
    const Streams = makeClientConstructor(StreamsDefinition.methods, 'Streams');
    const open = () => new Streams(server.address, credentials.createInsecure());
    const call = (
      of: ReturnType<typeof open>,
      request: object,
      metadata: object = {},
      options: object = {},
    ) =>
      new Promise<Item>((resolve, reject) => {
        const given = new GrpcJsMetadata();
        for (const [key, value] of Object.entries(metadata)) given.set(key, value);
        of.unary!(request, given, options, (error: ServiceError | null, response: Item) =>
          error === null ? resolve(response) : reject(error),
        );
      });

    test('messages arrive in both directions', async () => {
      const client = open();
      expect(await call(client, { text: 'a' })).toMatchObject({ text: 'a' });
      const got: number[] = [];
      for await (const { number } of client.count!({ count: 3 }) as AsyncIterable<Item>) got.push(number);
      expect(got).toEqual([0, 1, 2]);
      client.close();
    });

    test('details of an error are google.rpc.Status', async () => {
      const client = open();
      const error = (await call(client, { text: 'missing' }).catch((e: unknown) => e)) as ServiceError;
      client.close();
      expect(error).toMatchObject({ code: Status.NOT_FOUND, details: 'no such thing: \u00e9 \ud83d\ude80' });
      const [bytes] = error.metadata.get('grpc-status-details-bin');
      const { code, details } = RpcStatus.decode(bytes as Buffer);
      expect(code).toBe(Status.NOT_FOUND);
      expect(details.map(({ typeUrl }) => typeUrl)).toEqual(['type.googleapis.com/google.rpc.BadRequest']);
      expect(BadRequest.decode(details[0]!.value).fieldViolations[0]?.field).toBe('text');
    });

    test('cancelling reaches a handler that waits for requests', async () => {
      const client = open();
      const talk = client.talk!() as ClientDuplexStream<object, Item>;
      const failed = new Promise<ServiceError>((resolve) => talk.once('error', resolve));
      talk.once('data', () => talk.cancel());
      talk.write({ number: 1 });
      expect((await failed).code).toBe(Status.CANCELLED);
      expect(await seen.aborted()).toMatchObject({ code: Status.CANCELLED });
      client.close();
    });

    test('a deadline ends the call and its handler', async () => {
      const client = open();
      await call(client, {});
      const late = call(client, { text: 'hang' }, {}, { deadline: Date.now() + 50 });
      await expect(late).rejects.toMatchObject({ code: Status.DEADLINE_EXCEEDED });
      client.close();
      const reason = (await seen.aborted()) as RpcError;
      // The client's limit and the server's limit pass at about the same time, and nice-grpc does not report
      // which limit it was.
      const codes: number[] = [Status.CANCELLED, Status.DEADLINE_EXCEEDED];
      expect(codes).toContain(reason.code);
    });
  });

  test('a handler that is not a function is refused', () => {
    const adapt = kind === 'grpc-js' ? toGrpcJsHandlers : toNiceGrpcHandlers;
    expect(() => adapt(StreamsDefinition, { unary: 5 } as never)).toThrow(
      'test.stream.Streams: handler unary is a number, not a function',
    );
  });
});
