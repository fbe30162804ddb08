/**
 * Getters of a request end their own call while the request is being encoded: they abort its signal, or close
 * its channel. The call settles once, independent of its state when its encoding began, and no memory is
 * left.
 */
import { allocBuffer, type Channel, configure, createClient, type Lease, RpcError, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { nativeWays, openPair, pairWays } from './pair.ts';

const KiB = 1024;
configure({ arenaBytes: 8 * 1024 * KiB });
const turn = () => new Promise((resolve) => setImmediate(resolve));

const unheard: unknown[] = [];
const hear = (fault: unknown) => unheard.push(fault);
beforeEach(() => {
  unheard.length = 0;
  process.on('uncaughtException', hear);
  process.on('unhandledRejection', hear);
});
afterEach(async () => {
  await turn();
  process.off('uncaughtException', hear);
  process.off('unhandledRejection', hear);
  expect(unheard).toEqual([]);
});

/** Returns a text. The first read of the text, or a later read, ends the call. */
function ending(size: number, nth: number, end: () => void): { readonly text: string } {
  let asked = 0;
  return {
    get text() {
      if (++asked === nth) end();
      return 'x'.repeat(size);
    },
  };
}

async function open(way: (typeof pairWays)[number]) {
  const held: (() => void)[] = [];
  let handled = 0;
  const pair = await openPair(
    way,
    (server) =>
      server
        .add(EchoDefinition, {
          echo: ({ number }) => {
            ++handled;
            return { number };
          },
          fetch: async () => {
            await new Promise<void>((resolve) => held.push(resolve));
            return {};
          },
        })
        .add(StreamsDefinition, {
          count: async function* ({ count }, { signal }) {
            yield { number: 1 };
            if (count === 1)
              await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          },
          sum: async (items) => {
            let number = 0;
            for await (const item of items) number += item.number;
            return { number };
          },
        }),
    {},
    { inflightMax: 1, streamsMax: 1 },
  );
  const client = createClient(EchoDefinition, pair.channel);
  const streams = createClient(StreamsDefinition, pair.channel);
  return { pair, held, client, streams, handled: () => handled };
}

function fill(channel: Channel): Lease[] {
  const leases: Lease[] = [];
  for (let bytes = 1024 * KiB; bytes > 4 * KiB; bytes /= 2) {
    try {
      for (;;) leases.push(allocBuffer(bytes - 4 * KiB, channel));
    } catch (error) {
      expect(error).toBeInstanceOf(RpcError);
    }
  }
  return leases;
}

const sizes = [3, 30_000, 600 * KiB];
const cases = pairWays.flatMap((way) =>
  sizes.flatMap((size) => [1, 2].map((nth) => [way, size, nth] as const)),
);

describe.each(cases)('over %s, with %i characters, at read number %i', (way, size, nth) => {
  /** A small text is read only once, so the call may succeed. */
  const ended = async (call: Promise<unknown>, code: number = Status.CANCELLED) => {
    const result = await call.then(
      () => 'good',
      (error: unknown) => error,
    );
    if (nth === 1 || result !== 'good') expect(result).toMatchObject({ code });
  };

  test('a call of a connected channel settles once', async () => {
    const { pair, client } = await open(way);
    await pair.channel.ready();
    const controller = new AbortController();
    const request = ending(size, nth, () => controller.abort());
    await ended(client.echo(request, { signal: controller.signal }));
    expect(await client.echo({ number: 5 })).toMatchObject({ number: 5 });
    await pair.close();
  });

  test.each([1, 3])('call number %i of three from the queue settles once', async (place) => {
    const { pair, client, held } = await open(way);
    const first = client.fetch({});
    while (held.length === 0) await turn();
    const controllers = [1, 2, 3].map(() => new AbortController());
    const calls = controllers.map(({ signal }, i) => {
      const own = controllers[i]!;
      const request = i === place - 1 ? ending(size, nth, () => own.abort()) : { number: i };
      return client.echo(request, { signal });
    });
    held[0]!();
    await first;
    await ended(calls[place - 1]!);
    for (const [i, call] of calls.entries())
      if (i !== place - 1) expect(await call).toMatchObject({ number: i });
    for (let i = 0; i < 5; ++i) expect(await client.echo({ number: i })).toMatchObject({ number: i });
    await pair.close();
  });

  test.runIf(nativeWays.includes(way))('a call that waits for memory settles once', async () => {
    const { pair, client } = await open(way);
    await client.echo({});
    const leases = fill(pair.channel);
    const controller = new AbortController();
    // The getter acts at the second attempt, because the first attempt finds no memory.
    let room = false;
    let asked = 0;
    const call = client.echo(
      {
        get text() {
          if (room && ++asked === nth) controller.abort();
          return 'x'.repeat(size);
        },
      },
      { signal: controller.signal },
    );
    for (let i = 0; i < 3; ++i) await client.echo({});
    room = true;
    for (const lease of leases) lease.release();
    const result = await call.then(
      () => 'good',
      (error: unknown) => error,
    );
    if (result !== 'good') expect(result).toMatchObject({ code: Status.CANCELLED });
    if (size > 100 * KiB && nth === 1) expect(result).not.toBe('good');
    expect(await client.echo({ number: 5 })).toMatchObject({ number: 5 });
    for (const lease of fill(pair.channel)) lease.release();
    await pair.close();
  });

  test.each([true, false])('a stream settles once; its channel still connects: %s', async (waits) => {
    const { pair, streams } = await open(way);
    await pair.channel.ready();
    const blocking = waits ? streams.count({ count: 1 })[Symbol.asyncIterator]() : undefined;
    await blocking?.next();
    const controller = new AbortController();
    const request = ending(size, nth, () => controller.abort());
    const call = streams.count(request, { signal: controller.signal })[Symbol.asyncIterator]();
    const next = call.next();
    await turn();
    await blocking?.return?.();
    await ended(next.then(() => call.next()));
    const last = streams.count({})[Symbol.asyncIterator]();
    expect(await last.next()).toMatchObject({ value: { number: 1 } });
    expect(await last.next()).toMatchObject({ done: true });
    await pair.close();
  });

  test('a stream message ends its stream once', async () => {
    const { pair, streams } = await open(way);
    const controller = new AbortController();
    const items = [{ number: 1 }, ending(size, nth, () => controller.abort()), { number: 3 }];
    await ended(streams.sum(items, { signal: controller.signal }));
    expect(await streams.sum([{ number: 1 }, { number: 2 }])).toMatchObject({ number: 3 });
    await pair.close();
  });

  test.each(['connected', 'out of the queue'])(
    'a call settles once when its channel is closed: %s',
    async (where) => {
      const { pair, client, held, streams } = await open(way);
      await pair.channel.ready();
      const first = where === 'connected' ? undefined : client.fetch({}).catch(() => undefined);
      while (first !== undefined && held.length === 0) await turn();
      let closed: Promise<void> | undefined;
      const close = () => {
        closed ??= pair.channel.close();
      };
      const call = ended(client.echo(ending(size, nth, close)), Status.UNAVAILABLE);
      const others = [
        client.echo({ number: 2 }),
        streams
          .count(ending(size, nth, close))
          [Symbol.asyncIterator]()
          .next(),
      ].map((other) => other.catch(() => undefined));
      held[0]?.();
      await Promise.all([first, call, ...others]);
      await closed;
      await pair.close();
    },
  );
});
