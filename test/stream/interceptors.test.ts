/**
 * Tests interceptors around streams. All kinds of methods look alike to them, and the guarantees of streams
 * hold with them, too.
 */
import { createClient, type Interceptor, Metadata, RpcError, type RpcRequest, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { openPair, type Pair, pairWays } from '../runtime/pair.ts';
import { type Item, StreamsDefinition } from './gen/stream.rdma.ts';
import { collect } from './stream-world.ts';
import { newLog, type StreamLog, streamHandlers } from './streams-service.ts';

let pair: Pair | undefined;
afterEach(async () => {
  await pair?.close();
  pair = undefined;
});

async function* each<T>(messages: AsyncIterable<T>, see: (message: T) => T): AsyncIterable<T> {
  for await (const message of messages) yield see(message);
}

/** Records every message in both directions. */
const watch =
  (notes: string[]): Interceptor =>
  (next) =>
  async (request) => {
    if (!request.stream) return next(request);
    const note = (way: string) => (message: unknown) => {
      const { number, count } = message as { number?: number; count?: number };
      notes.push(`${request.side} ${way} ${number ?? count}`);
      return message;
    };
    const response = await next({ ...request, message: each(request.message, note('in')) });
    if (!response.stream) throw new Error('expected a stream');
    return { ...response, message: each(response.message, note('out')) };
  };

const numbers = (count: number) => Array.from({ length: count }, (_, number) => ({ number }));

describe.each(pairWays)('%s', (way) => {
  async function open(
    interceptor: Interceptor,
    log: StreamLog = newLog(),
    side: 'both' | 'client' | 'server' = 'both',
  ) {
    pair = await openPair(way, (server) =>
      server.use(...(side === 'client' ? [] : [interceptor])).add(StreamsDefinition, streamHandlers(log)),
    );
    const interceptors = side === 'server' ? [] : [interceptor];
    return createClient(StreamsDefinition, pair.channel, { '*': { interceptors } });
  }

  test('see every message of every kind', async () => {
    const notes: string[] = [];
    const client = await open(watch(notes));
    const seen = () => notes.splice(0).sort();
    const both = (...lines: string[]) => lines.flatMap((line) => [`client ${line}`, `server ${line}`]).sort();

    expect((await collect(client.count({ count: 2 }))).map(({ number }) => number)).toEqual([0, 1]);
    expect(seen()).toEqual(both('in 2', 'out 0', 'out 1'));
    expect((await client.sum(numbers(3))).number).toBe(3);
    expect(seen()).toEqual(both('in 0', 'in 1', 'in 2', 'out 3'));
    expect(await collect(client.echo(numbers(2)))).toHaveLength(2);
    expect(seen()).toEqual(both('in 0', 'in 1', 'out 0', 'out 1'));
    expect((await client.unary({ count: 9 })).number).toBe(9);
    expect(seen()).toEqual([]);
  });

  test('may change messages, including large ones', async () => {
    const grow: Interceptor = (next) => async (request) => {
      const response = await next(request);
      if (!response.stream || request.side === 'server') return response;
      const message = each(response.message, (item) => ({ ...(item as Item), text: 'grown' }));
      return { ...response, message };
    };
    const client = await open(grow);
    const items = await collect(client.count({ count: 3, bytes: 100_000 }));
    expect(items.map(({ text, payload }) => [text, payload.byteLength])).toEqual(
      new Array(3).fill(['grown', 100_000]),
    );
  });

  test('see header and trailer, may change them, and get each once', async () => {
    const sign: Interceptor = (next) => async (request) => {
      request.metadata.set('x-header', 'please');
      const response = await next(request);
      if (request.side === 'server') response.trailer.set('x-signed', 'server');
      return response;
    };
    const client = await open(sign);
    const heard: string[] = [];
    const options = {
      onHeader: (header: Metadata) => heard.push(`header ${[...header]}`),
      onTrailer: (trailer: Metadata) => heard.push(`trailer ${[...trailer]}`),
    };
    await collect(client.count({ count: 2 }, options));
    expect(heard.splice(0)).toEqual(['header x-header,given', 'trailer x-signed,server']);
    await collect(client.talk([{ text: 'twice' }], options));
    expect(heard).toEqual(['header x-talk,early', 'trailer x-signed,server,x-end,all']);
  });

  test('get errors after the messages before them, with their trailer', async () => {
    const seen: string[] = [];
    const client = await open((next) => async (request) => {
      const response = await next(request);
      if (!response.stream) return response;
      async function* caught(messages: AsyncIterable<unknown>) {
        try {
          yield* messages;
        } catch (error) {
          seen.push(`${request.side} ${(error as Error).message}`);
          throw error;
        }
      }
      return { ...response, message: caught(response.message) };
    });
    const got: number[] = [];
    let trailer: Metadata | undefined;
    const failed = (async () => {
      const onTrailer = (given: Metadata) => {
        trailer = given;
      };
      for await (const { number } of client.behave({ count: 2, text: 'not found' }, { onTrailer }))
        got.push(number);
    })();
    await expect(failed).rejects.toMatchObject({ code: Status.NOT_FOUND, processed: 'yes' });
    expect(got).toEqual([0, 1]);
    expect(trailer?.get('x-why')).toBe('gone');
    expect(seen).toEqual(['server NOT_FOUND: no such thing', 'client NOT_FOUND: no such thing']);
  });

  test('a reader that leaves early ends the handler, through all interceptors', async () => {
    const log = newLog();
    const client = await open((next) => (request) => next(request), log);
    for await (const { number } of client.behave({ count: 1_000_000, text: 'long' })) if (number === 5) break;
    await expect.poll(() => log.finished).toEqual(['long']);
    expect(log.aborted).toEqual([Status.CANCELLED]);
  });

  test('a deadline ends a stream, through all interceptors', async () => {
    const client = await open((next) => (request) => next(request));
    const call = collect(client.behave({ count: 1, text: 'hang' }, { timeoutMs: 100 }));
    await expect(call).rejects.toMatchObject({ code: Status.DEADLINE_EXCEEDED });
  });

  test.each(['client', 'server'] as const)('of the %s may answer by themselves', async (side) => {
    const answer: Interceptor = () => async (request) => {
      async function* messages() {
        yield { number: 42 };
      }
      const { service, method } = request;
      return {
        service,
        method,
        stream: true,
        message: messages(),
        header: new Metadata(),
        trailer: new Metadata(),
      };
    };
    const client = await open(answer, newLog(), side);
    expect((await collect(client.count({}))).map(({ number }) => number)).toEqual([42]);
    expect((await client.sum([])).number).toBe(42);
  });

  test('may repeat a call, after a failure before the first message', async () => {
    let attempts = 0;
    const again: Interceptor = (next) => async (request) => {
      if (request.side === 'client') return next(request);
      if (++attempts === 1) throw new RpcError(Status.ABORTED, 'try again');
      return next(request);
    };
    const client = await open(again);
    await expect(collect(client.count({ count: 1 }))).rejects.toMatchObject({ code: Status.ABORTED });
    expect(await collect(client.count({ count: 1 }))).toHaveLength(1);
  });

  test('leave no unhandled rejection when one fails without reading the answer', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const give: Interceptor = (next) => async (request: RpcRequest) => {
      await next(request);
      throw new RpcError(Status.ABORTED, `${request.side} gave up`);
    };
    const client = await open(give, newLog(), 'server');
    await expect(client.take([{ text: 'what' }])).rejects.toMatchObject({ code: Status.ABORTED });
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  test('that remove a message cause an error with that reason', async () => {
    async function* nothing() {}
    const take: Interceptor = (next) => (request) =>
      next(request.stream ? { ...request, message: nothing() } : request);
    const client = await open(take, newLog(), 'server');
    await expect(collect(client.count({ count: 1 }))).rejects.toThrow(/removed the message/);
  });
});
