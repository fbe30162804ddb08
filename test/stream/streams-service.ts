/**
 * Implements the service that the tests of streams call, and the requests that its handlers have seen.
 */
import { type HandlerContext, type Handlers, RpcError, Status } from 'rdma-rpc';
import type { ItemInit, Order, StreamsDefinition } from './gen/stream.rdma.ts';

export interface StreamLog {
  /** Number of messages that were requested from `behave`. */
  produced: number;
  /** Number of handlers that have left their `finally` block. */
  finished: string[];
  /** Codes of the reasons of signals that fired. */
  aborted: number[];
  /** Errors that handlers caught from their requests. */
  caught: unknown[];
  /** Texts that arrived by one-way calls. */
  notes: string[];
}

export function newLog(): StreamLog {
  return { produced: 0, finished: [], aborted: [], caught: [], notes: [] };
}

const forever = new Promise<never>(() => undefined);

async function* behave(order: Order, context: HandlerContext, log: StreamLog): AsyncIterable<ItemInit> {
  context.signal.addEventListener('abort', () => {
    log.aborted.push((context.signal.reason as RpcError).code);
  });
  const payload = new Uint8Array(order.bytes);
  try {
    for (let number = 0; number < order.count; ++number) {
      ++log.produced;
      yield { number, payload };
    }
    switch (order.text) {
      case 'throw':
        throw new Error('a secret');
      case 'not found':
        context.trailer.set('x-why', 'gone');
        throw new RpcError(Status.NOT_FOUND, 'no such thing');
      case 'hang':
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
        break;
      case 'never':
        await forever;
        break;
      case 'metadata':
        for (const [key, value] of context.metadata) context.trailer.append(key, value);
        break;
    }
  } finally {
    log.finished.push(order.text);
  }
}

export function streamHandlers(log: StreamLog): Partial<Handlers<typeof StreamsDefinition>> {
  return {
    *count({ count, bytes }, context) {
      const wish = context.metadata.get('x-header');
      if (wish === 'huge') context.header.set('x-header', 'x'.repeat(10_000));
      else if (wish !== undefined) context.header.set('x-header', 'given');
      const payload = new Uint8Array(bytes).fill(7);
      for (let number = 0; number < count; ++number) yield { number, payload };
    },
    async sum(items) {
      let count = 0;
      let sum = 0;
      for await (const { number } of items) {
        ++count;
        sum += number;
      }
      return { number: sum, text: `${count}` };
    },
    async *echo(items) {
      yield* items;
    },
    behave: (order, context) => behave(order, context, log),
    async take(items, context) {
      const first = await items[Symbol.asyncIterator]().next();
      const text = first.done ? 'nothing' : first.value.text;
      switch (text) {
        case 'leave':
          return { text: 'left' };
        case 'all':
          try {
            for await (const item of items) ++log.produced && item;
          } catch (error) {
            log.caught.push((error as RpcError).code);
            throw error;
          } finally {
            log.finished.push(context.signal.aborted ? 'aborted' : 'well');
          }
          return { text: 'had all' };
        case 'large':
          return { payload: new Uint8Array(300_000).fill(3) };
        case 'empty':
          return undefined as unknown as ItemInit;
        default:
          throw new RpcError(Status.INVALID_ARGUMENT, `took ${text}`);
      }
    },
    async *talk(items, context) {
      context.header.set('x-talk', 'early');
      context.sendHeader();
      for await (const item of items) {
        if (item.text === 'stop') return;
        if (item.text === 'twice') yield item;
        yield item;
      }
      context.trailer.set('x-end', 'all');
    },
    hold: (_, context) =>
      new Promise((resolve) => {
        context.signal.addEventListener('abort', () => resolve({}));
      }),
    async *first(items) {
      for await (const item of items) {
        yield item;
        break;
      }
      // The wait is long enough for the client to send all its messages.
      for (let i = 0; i < 200; ++i) await new Promise((resolve) => setImmediate(resolve));
      yield { number: 30_000 };
    },
    note: async ({ text }, context) => {
      log.notes.push(text);
      if (text === 'not found') throw new RpcError(Status.NOT_FOUND, 'no such thing');
      if (text !== 'hang') return;
      await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
      log.finished.push('note');
    },
    unary: ({ count }) => ({ number: count }),
  };
}
