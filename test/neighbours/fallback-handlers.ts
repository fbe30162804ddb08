/**
 * Implements the service that runs both over a channel of ours and over grpc-js (fallback.test.ts), and the
 * requests that its handlers have seen.
 */
import { type Handlers, RpcError, Status } from 'rdma-rpc';
import { BadRequest, detail } from 'rdma-rpc/details';
import type { StreamsDefinition } from '../stream/gen/stream.rdma.ts';

export const witnessed = {
  /** How often request iterators of `hold` have ended, and how often signals of handlers have fired. */
  heard: [] as string[],
  failures: 0,
};

export const handlers: Partial<Handlers<typeof StreamsDefinition>> = {
  async unary({ text, payload, count }, context) {
    const { metadata, header, trailer, signal } = context;
    header.set('x-header', 'ahead');
    header.set('x-bytes-bin', Uint8Array.of(0, 255));
    const seen = [...metadata]
      .filter(([key]) => key.startsWith('x-'))
      .map(([key, value]) => `${key}=${value.length}`);
    trailer.set('x-trailer', seen.sort().join(' '));
    if (text === 'limit') return { number: (context.timeoutMs() ?? -1) > 0 ? 1 : 0 };
    if (text === 'flaky' && ++witnessed.failures <= count) throw new RpcError(Status.UNAVAILABLE, 'not yet');
    if (text === 'hang') {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      witnessed.heard.push('hang');
      await new Promise(() => undefined);
    }
    if (text === 'missing')
      throw new RpcError(Status.NOT_FOUND, 'no such thing', {
        trailer: undefined,
        details: [detail(BadRequest, { fieldViolations: [{ field: 'text', description: 'gone' }] })],
      });
    return { text, payload };
  },
  async *count({ count, text }, { header, trailer, signal }) {
    header.set('x-header', 'ahead');
    trailer.set('x-trailer', 'behind');
    signal.addEventListener('abort', () => witnessed.heard.push('count'));
    for (let number = 0; number < count; ++number) {
      yield { number };
      if (text === 'slow') await new Promise((resolve) => setImmediate(resolve));
    }
    if (text === 'fail') throw new RpcError(Status.DATA_LOSS, 'half of it is gone');
  },
  async sum(items) {
    let number = 0;
    for await (const item of items) number += item.number;
    return { number };
  },
  async *echo(items) {
    yield* items;
  },
  async hold(_, { signal }) {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    return {};
  },
  note: ({ text }) => void witnessed.heard.push(`note ${text}`),
};
