/**
 * Tests buffers whose registration takes time: only the calls with such buffers wait.
 */
import {
  type Channel,
  createClient,
  createInProcessChannel,
  leaseOf,
  registerBuffer,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { caught, until } from '../outcomes.ts';
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { keptOn, nothingKept } from '../runtime/kept.ts';
import { type Item, type ItemInit, StreamsDefinition } from '../stream/gen/stream.rdma.ts';

const MiB = 1024 * 1024;
const large = (fill: number) => new Uint8Array(4 * MiB).fill(fill);

let channel: Channel;
beforeEach(() => {
  channel = createInProcessChannel((server) =>
    server.add(EchoDefinition, echoHandlers({ started: 0, aborted: [] })).add(StreamsDefinition, {
      async *echo(items: AsyncIterable<Item>): AsyncGenerator<ItemInit> {
        for await (const item of items) {
          yield { number: item.number, payload: large(item.payload[0]!) };
          leaseOf(item)?.release();
        }
      },
    }),
  );
});
afterEach(() => channel.close());

const registered = () => stats('sim').mrBackground;

describe('a request in a large buffer', () => {
  test('waits for its registration, and small calls do not', async () => {
    const client = createClient(EchoDefinition, channel);
    await client.echo({});
    const before = registered();
    const order: string[] = [];
    const call = client.behave({ text: 'release', payload: large(1) }).then(({ number }) => {
      order.push('large');
      return number;
    });
    await client.echo({}).then(() => order.push('small'));
    expect(await call).toBe((4 * MiB) % 65_536);
    expect(order).toEqual(['small', 'large']);
    expect(registered()).toBe(before + 1);
    expect(keptOn('sim')).toEqual(nothingKept);
  });

  test('is registered once, however many calls send it, and later calls find it registered', async () => {
    const client = createClient(EchoDefinition, channel);
    await client.echo({});
    const [before, misses] = [registered(), stats('sim').mrMisses];
    const payload = large(2);
    const send = () => client.behave({ text: 'release', payload });
    const sums = (await Promise.all([send(), send(), send()])).map(({ number }) => number);
    expect(sums).toEqual(Array(3).fill((8 * MiB) % 65_536));
    await send();
    expect(registered()).toBe(before + 1);
    expect(stats('sim').mrMisses).toBe(misses + 1);
  });

  test('registerBuffer registers at once', async () => {
    const client = createClient(EchoDefinition, channel);
    await client.echo({});
    const before = registered();
    const payload = large(3);
    registerBuffer(payload, channel);
    await client.behave({ text: 'release', payload });
    expect(registered()).toBe(before);
  });

  test('that is cancelled before it ends fails at once, unsent', async () => {
    const client = createClient(EchoDefinition, channel);
    await client.echo({});
    const abort = new AbortController();
    const call = caught(client.behave({ text: 'release', payload: large(4) }, { signal: abort.signal }));
    abort.abort();
    expect(await call).toMatchObject({ code: Status.CANCELLED, processed: 'no' });
    // The channel nevertheless waits for the registration.
    await until(() => keptOn('sim').memoryWaiters === 0);
    expect(keptOn('sim')).toEqual(nothingKept);
  });

  test('whose memory is transferred during the registration is refused, and other calls continue', async () => {
    const client = createClient(EchoDefinition, channel);
    await client.echo({});
    const before = registered();
    const payload = large(5);
    const call = caught(client.behave({ text: 'release', payload }));
    structuredClone(payload.buffer, { transfer: [payload.buffer] });
    expect(await call).toMatchObject({ processed: 'no' });
    expect(registered()).toBe(before);
    expect((await client.behave({ text: 'release', payload: large(6) })).text).toBe('leased');
  });

  test('ends with its channel', async () => {
    const client = createClient(EchoDefinition, channel);
    await client.echo({});
    const call = caught(client.behave({ text: 'release', payload: large(7) }));
    await channel.close();
    await call;
    await until(() => stats('sim').sessions === 0);
  });
});

test('a response in a large buffer waits for its registration, too', async () => {
  const client = createClient(EchoDefinition, channel);
  await client.echo({});
  const before = registered();
  const calls = [5 * MiB, 6 * MiB].map((number) => client.fetch({ number }));
  for (const [at, answer] of (await Promise.all(calls)).entries()) {
    expect(answer.payload).toHaveLength((5 + at) * MiB);
    leaseOf(answer)?.release();
  }
  // The registration of a channel that an earlier test has closed may end in the meantime, too.
  expect(registered()).toBeGreaterThanOrEqual(before + 2);
});

test('parts of streams in large buffers arrive in order, both ways', async () => {
  const client = createClient(StreamsDefinition, channel);
  const before = registered();
  const items = Array.from({ length: 6 }, (_, number) => ({
    number,
    payload: number % 2 === 0 ? large(number) : Uint8Array.of(number),
  }));
  let next = 0;
  for await (const item of client.echo(items)) {
    expect(item).toMatchObject({ number: next });
    expect(item.payload).toHaveLength(4 * MiB);
    expect(item.payload.at(-1)).toBe(next++);
    leaseOf(item)?.release();
  }
  expect(next).toBe(6);
  expect(registered()).toBeGreaterThan(before);
});
