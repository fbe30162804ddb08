/**
 * Tests clients of connect-es that are made from descriptors alone, over a channel of ours: all kinds of
 * methods, headers, errors and limits.
 */
import { create, createFileRegistry, type DescService, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { type CallOptions, Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import {
  type Channel,
  createChannel,
  createInProcessChannel,
  createServer,
  type Handlers,
  RpcError,
  type Interceptor as RpcInterceptor,
  Status,
} from 'rdma-rpc';
import { createConnectTransport } from 'rdma-rpc/connect';
import { BadRequest } from 'rdma-rpc/details';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FileDescriptor } from '../../runtime/codec/file-descriptor.ts';
import { streams } from '../../runtime/limits.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';

/** Returns what protoc would have passed to protobuf-es. */
function service(file: FileDescriptor, name: string): DescService {
  const files = new Map<string, FileDescriptor>();
  const visit = (each: FileDescriptor): void => {
    for (const dependency of each.dependencies) visit(dependency);
    files.set(each.name, each);
  };
  visit(file);
  const protos = [...files.values()].map(({ bytes }) => fromBinary(FileDescriptorProtoSchema, bytes));
  return createFileRegistry(create(FileDescriptorSetSchema, { file: protos })).getService(name)!;
}
const Streams = service(StreamsDefinition.file, StreamsDefinition.fullName);

/** A client without generated types. */
interface Message {
  number?: number;
  text?: string;
  count?: number;
  payload?: Uint8Array;
}
interface Client {
  unary(request: Message, options?: CallOptions): Promise<Required<Message>>;
  count(request: Message, options?: CallOptions): AsyncIterable<Required<Message>>;
  sum(requests: AsyncIterable<Message>, options?: CallOptions): Promise<Required<Message>>;
  echo(requests: AsyncIterable<Message>, options?: CallOptions): AsyncIterable<Required<Message>>;
  behave(request: Message, options?: CallOptions): AsyncIterable<Required<Message>>;
  missing(requests: AsyncIterable<Message>, options?: CallOptions): AsyncIterable<Required<Message>>;
}

const aborted: RpcError[] = [];
/** HTTP headers cannot contain this text. */
const outlandish = '100 % ✓ ü\nßψ🙂';
const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) =>
    signal.addEventListener('abort', () => {
      aborted.push(signal.reason as RpcError);
      resolve();
    }),
  );
const handlers: Partial<Handlers<typeof StreamsDefinition>> = {
  unary: async ({ text, payload }, { metadata, header, trailer, signal }) => {
    header.set('x-header', 'ahead');
    header.set('x-bytes-bin', new Uint8Array([0, 255]));
    trailer.set('x-trailer', [...metadata].map(([key, value]) => `${key}=${value}`).join(' '));
    if (text === 'hang') {
      await untilAborted(signal);
      await new Promise(() => undefined);
    }
    if (text === 'missing')
      throw new RpcError(Status.NOT_FOUND, 'no such thing', {
        details: [{ type: BadRequest, value: { fieldViolations: [{ field: 'text' }] } }],
      });
    if (text.startsWith('text beyond Latin-1')) {
      const where = text.slice(text.lastIndexOf(' ') + 1);
      if (where === 'header') header.set('x-text', outlandish);
      if (where === 'trailer') trailer.set('x-text', outlandish);
      if (where === 'error')
        throw new RpcError(Status.NOT_FOUND, 'no such thing', { trailer: { 'x-text': outlandish } });
    }
    return { text, payload };
  },
  *count({ count }, { header, trailer }) {
    header.set('x-header', 'ahead');
    trailer.set('x-trailer', 'behind');
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
  async *behave(_, { signal }) {
    yield { text: 'begun' };
    await untilAborted(signal);
  },
};

async function* items(...numbers: number[]): AsyncGenerator<Message> {
  for (const number of numbers) yield { number };
}
async function numbers(messages: AsyncIterable<Message>): Promise<(number | undefined)[]> {
  const seen: (number | undefined)[] = [];
  for await (const { number } of messages) seen.push(number);
  return seen;
}
const caught = async (call: Promise<unknown>): Promise<ConnectError> => {
  const error: unknown = await call.then(
    () => undefined,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(ConnectError);
  return error as ConnectError;
};

describe.each(['in process', 'shm'])('%s', (way) => {
  let channel: Channel;
  let client: Client;
  let close: () => Promise<void>;
  beforeEach(async () => {
    aborted.length = 0;
    if (way === 'in process') {
      channel = createInProcessChannel((server) => server.add(StreamsDefinition, handlers));
      close = () => channel.close();
    } else {
      const server = createServer().add(StreamsDefinition, handlers);
      channel = createChannel(await server.listen('127.0.0.1:0'));
      close = async () => {
        await channel.close();
        await server.shutdown({ graceMs: 0 });
      };
    }
    client = createClient(Streams, createConnectTransport(channel)) as unknown as Client;
  });
  afterEach(() => close());

  test.each([0, 100, 9000, 1_000_000])('a message with %d bytes arrives', async (bytes) => {
    const payload = new Uint8Array(bytes).fill(9);
    const answer = await client.unary({ text: 'a', payload });
    expect(answer.text).toBe('a');
    expect(Buffer.compare(answer.payload, payload)).toBe(0);
  });

  test.each(['header', 'trailer', 'error'])(
    'text beyond Latin-1 in the %s costs the call nothing',
    async (where) => {
      let headers: Headers | undefined;
      const onHeader = (given: Headers): void => {
        if (where === 'header') headers = given;
      };
      const onTrailer = (given: Headers): void => {
        if (where === 'trailer') headers = given;
      };
      const call = client.unary({ text: `text beyond Latin-1 in the ${where}` }, { onHeader, onTrailer });
      if (where === 'error') {
        const error = await caught(call);
        expect([error.code, error.rawMessage]).toEqual([Code.NotFound, 'no such thing']);
        headers = error.metadata;
      } else await call;
      expect(decodeURIComponent(headers!.get('x-text')!)).toBe(outlandish);
    },
  );

  test('a loop that ends by break, or by an error, frees its stream', async () => {
    for (let i = 0; i < streams.default + 10; ++i) {
      const loop = (async () => {
        for await (const message of client.count({ count: 1_000_000 })) {
          if (i % 2 === 0) break;
          throw new Error(`${message.number}`);
        }
      })();
      await loop.catch(() => undefined);
    }
    // Streams that are still being read must not end either.
    const kept = client.count({ count: 50 })[Symbol.asyncIterator]();
    expect((await kept.next()).value?.number).toBe(0);
    expect(await numbers(client.count({ count: 3 }))).toEqual([0, 1, 2]);
    let last = 0;
    for (let next = await kept.next(); next.done !== true; next = await kept.next()) last = next.value.number;
    expect(last).toBe(49);
  });

  test('streams of all kinds work', async () => {
    expect(await numbers(client.count({ count: 4 }))).toEqual([0, 1, 2, 3]);
    expect((await client.sum(items(1, 2, 39))).number).toBe(42);
    expect(await numbers(client.echo(items(5, 6)))).toEqual([5, 6]);
  });

  test('headers and trailers arrive', async () => {
    const seen: unknown[] = [];
    const options: CallOptions = {
      headers: { 'x-asked': 'Ada' },
      onHeader: (header) => seen.push(header.get('x-header'), header.get('x-bytes-bin')),
      onTrailer: (trailer) => seen.push(trailer.get('x-trailer')),
    };
    await client.unary({}, options);
    expect(seen.splice(0)).toEqual(['ahead', 'AP8', 'x-asked=Ada']);
    await numbers(client.count({ count: 1 }, options));
    expect(seen).toContain('behind');
  });

  test('errors have their code, text, details and trailers', async () => {
    const error = await caught(client.unary({ text: 'missing' }, { headers: { a: 'b' } }));
    expect(error).toMatchObject({ code: Code.NotFound, rawMessage: 'no such thing' });
    expect(error.details).toMatchObject([{ type: 'google.rpc.BadRequest' }]);
    expect(
      BadRequest.decode((error.details[0] as { value: Uint8Array }).value).fieldViolations[0]?.field,
    ).toBe('text');
    expect(error.metadata.get('x-trailer')).toBe('a=b');
    expect(await caught(numbers(client.missing(items())))).toMatchObject({ code: Code.Unimplemented });
    expect(await caught(numbers(client.count({ count: 1.5 })))).toMatchObject({
      code: Code.Internal,
    });
  });

  test('a time limit and a signal end a call', async () => {
    expect(await caught(client.unary({ text: 'hang' }, { timeoutMs: 30 }))).toMatchObject({
      code: Code.DeadlineExceeded,
    });
    expect(await caught(client.unary({}, { timeoutMs: 0 }))).toMatchObject({ code: Code.DeadlineExceeded });
    const controller = new AbortController();
    const call = caught(client.unary({ text: 'hang' }, { signal: controller.signal }));
    setImmediate(() => controller.abort());
    expect(await call).toMatchObject({ code: Code.Canceled });
  });

  test('the signal ends a stream', async () => {
    const controller = new AbortController();
    const read = async (): Promise<void> => {
      for await (const { text } of client.behave({}, { signal: controller.signal })) {
        expect(text).toBe('begun');
        controller.abort();
      }
    };
    expect(await caught(read())).toMatchObject({ code: Code.Canceled });
    while (aborted.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(aborted[0]?.code).toBe(Status.CANCELLED);
  });

  test('interceptors of connect-es run', async () => {
    const seen: string[] = [];
    const watch: Interceptor = (next) => async (request) => {
      request.header.set('x-asked', 'by an interceptor');
      const response = await next(request);
      seen.push(`${request.method.name} ${request.stream} ${response.header.get('x-header')}`);
      return response;
    };
    const transport = createConnectTransport(channel, { interceptors: [watch] });
    const watched = createClient(Streams, transport) as unknown as Client;
    let trailer = '';
    await watched.unary({}, { onTrailer: (given) => (trailer = given.get('x-trailer') ?? '') });
    expect(trailer).toBe('x-asked=by an interceptor');
    await numbers(watched.count({ count: 1 }));
    expect(seen[0]).toBe('Unary false ahead');
    expect(seen[1]).toMatch(/^Count true/);
  });
});

describe('interceptors of the channel', () => {
  const seen: string[] = [];
  const ofChannel: RpcInterceptor = (next) => async (request) => {
    const { service, method, metadata: header } = request;
    seen.push(`${service.fullName} ${method.name} ${request.side} ${header.get('x-asked')}`);
    if (request.stream) {
      const response = await next({ ...request, message: counted(request.message) });
      return response.stream ? { ...response, message: counted(response.message) } : response;
    }
    if ((request.message as Message).text === 'no') throw new RpcError(Status.PERMISSION_DENIED, 'not you');
    header.set('x-signed', 'yes');
    return next(request);
  };
  async function* counted(messages: AsyncIterable<unknown>): AsyncGenerator<unknown> {
    let count = 0;
    for await (const message of messages) {
      ++count;
      yield message;
    }
    seen.push(`${count}`);
  }
  const ofConnect: Interceptor = (next) => (request) => {
    request.header.set('x-asked', 'connect-es');
    return next(request);
  };
  let channel: Channel;
  let client: Client;
  beforeEach(() => {
    seen.length = 0;
    channel = createInProcessChannel((server) => server.add(StreamsDefinition, handlers), {
      interceptors: [ofChannel],
    });
    const transport = createConnectTransport(channel, { interceptors: [ofConnect] });
    client = createClient(Streams, transport) as unknown as Client;
  });
  afterEach(() => channel.close());

  test('are run inside those of connect-es, and see its messages', async () => {
    let trailer = '';
    const onTrailer = (given: Headers) => {
      trailer = given.get('x-trailer') ?? '';
    };
    expect((await client.unary({ text: 'a' }, { onTrailer })).text).toBe('a');
    expect(trailer).toBe('x-asked=connect-es x-signed=yes');
    expect(seen).toEqual(['test.stream.Streams Unary client connect-es']);
    expect(await caught(client.unary({ text: 'no' }))).toMatchObject({
      code: Code.PermissionDenied,
      rawMessage: 'not you',
    });
    expect(await caught(client.unary({ text: 'missing' }))).toMatchObject({ code: Code.NotFound });
  });

  test.each<[string, (client: Client) => Promise<unknown>, unknown, string[]]>([
    ['Count', async (c) => numbers(c.count({ count: 3 })), [0, 1, 2], ['1', '3']],
    ['Sum', async (c) => (await c.sum(items(40, 2))).number, 42, ['2', '1']],
    ['Echo', async (c) => numbers(c.echo(items(1, 2))), [1, 2], ['2', '2']],
  ])('see streams: %s', async (name, call, answer, counts) => {
    expect(await call(client)).toEqual(answer);
    const [first, ...rest] = seen;
    expect(first).toBe(`test.stream.Streams ${name} client connect-es`);
    expect(rest.sort()).toEqual(counts.sort());
  });
});

test('options are checked', () => {
  const channel = createInProcessChannel(() => undefined);
  expect(() => createConnectTransport(channel, { interceptor: [] } as object)).toThrow(
    /did you mean interceptors/,
  );
  return channel.close();
});
