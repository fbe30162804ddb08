/**
 * Buffers are resized or transferred while their message waits to be encoded: in a queue of the channel, for
 * memory, between attempts, or for stream credit. The call must fail with an error that says so, and other
 * calls must continue. A message that was encoded when the call was made contains the bytes of that moment.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { allocBuffer, configure, createClient, type Lease, RpcError, type Server, Status } from 'rdma-rpc';
import { type Peers, peersOf, serveReverse } from 'rdma-rpc/reverse';
import { describe, expect, test } from 'vitest';
import { defineService, method } from '../../runtime/msgpack/index.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { EchoDefinition, type EchoMessage } from './gen/echo.rdma.ts';
import { nativeWays, openPair, pairWays } from './pair.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const KiB = 1024;
configure({ arenaBytes: 8 * 1024 * KiB });

interface Blob {
  blob: Uint8Array;
}
const service = defineService({ name: 'test.Changed', methods: { Echo: method<Blob, Blob>() } });
/** TypeScript declares these methods from ES2024 on. */
type Resizable = ArrayBuffer & { resize(bytes: number): void };
const Buffers = ArrayBuffer as unknown as new (
  bytes: number,
  options: { maxByteLength: number },
) => Resizable;

/** Returns a view of a buffer and two functions that change the buffer. */
function changing(bytes: number, how: string): { view: Uint8Array; change: () => void } {
  const buffer = new Buffers(bytes, { maxByteLength: 2 * bytes });
  const ways: Record<string, () => unknown> = {
    longer: () => buffer.resize(2 * bytes),
    shorter: () => buffer.resize(bytes / 2),
    empty: () => buffer.resize(0),
    detached: () => structuredClone(buffer, { transfer: [buffer] }),
  };
  return { view: new Uint8Array(buffer).fill(bytes), change: () => void ways[how]!() };
}
const hows = ['longer', 'shorter', 'empty', 'detached'];
const gone = /resized, transferred or detached/;
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe.each(pairWays.flatMap((way) => hows.map((how) => [way, how] as const)))(
  'over %s, %s',
  (way, how) => {
    test.each([100, 20_000, 300_000])(
      'fails a call with %i bytes that waits for its connection',
      async (bytes) => {
        const handled: number[] = [];
        const echo = (request: EchoMessage) => {
          handled.push(request.number);
          return request;
        };
        const pair = await openPair(way, (server) =>
          server.add(EchoDefinition, { echo }).add(service, { Echo: (blob: Blob) => blob }),
        );
        const client = createClient(EchoDefinition, pair.channel);
        const plain = createClient(service, pair.channel);
        const [payload, part, blob, same] = [1, 2, 3, 4].map(() => changing(bytes, how));
        const calls: Promise<unknown>[] = [
          client.echo({ number: 1, payload: payload!.view }),
          client.echo({ number: 2, parts: [new Uint8Array(1), part!.view] }),
          plain.Echo({ blob: blob!.view }),
        ];
        const other = client.echo({ number: 3, payload: same!.view });
        for (const each of [payload, part, blob]) each!.change();
        for (const call of calls) await expect(call.then(() => 'sent')).rejects.toThrow(gone);
        expect(Buffer.compare((await other).payload, same!.view)).toBe(0);
        expect(handled).toEqual([3]);
        await pair.close();
      },
    );

    test('fails a call that waits for a call slot', async () => {
      const held: (() => void)[] = [];
      const fetch = async () => {
        await new Promise<void>((resolve) => held.push(resolve));
        return {};
      };
      const register = (server: Server) =>
        server.add(EchoDefinition, { echo: (request) => request, fetch }).add(StreamsDefinition, {
          count: async function* ({ count }, { signal }) {
            yield { number: 1 };
            if (count === 1)
              await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          },
        });
      const pair = await openPair(way, register, {}, { inflightMax: 1, streamsMax: 1 });
      const client = createClient(EchoDefinition, pair.channel);
      const streams = createClient(StreamsDefinition, pair.channel);
      const first = client.fetch({});
      const open = streams.count({ count: 1 })[Symbol.asyncIterator]();
      await open.next();
      while (held.length === 0) await turn();
      const [payload, order] = [1, 2].map(() => changing(1000, how));
      const call = client.echo({ payload: payload!.view });
      const stream = streams.count({ payload: order!.view })[Symbol.asyncIterator]().next();
      const others = [client.echo({ number: 7 }), streams.count({})[Symbol.asyncIterator]().next()];
      for (const each of [payload, order]) each!.change();
      held[0]!();
      await open.return?.();
      await expect(call.then(() => 'sent')).rejects.toThrow(gone);
      await expect(stream.then(() => 'sent')).rejects.toThrow(gone);
      await first;
      expect(await Promise.all(others)).toMatchObject([{ number: 7 }, { value: { number: 1 } }]);
      await pair.close();
    });

    test.runIf(nativeWays.includes(way))('fails a call that waits for arena memory', async () => {
      const pair = await openPair(way, (server) =>
        server.add(EchoDefinition, { echo: ({ number }) => ({ number }) }),
      );
      const client = createClient(EchoDefinition, pair.channel);
      await client.echo({});
      // Messages of earlier tests that have become garbage must not free memory while the call waits.
      for (let i = 0; i < 3; ++i) {
        collect();
        await turn();
      }
      const leases: Lease[] = [];
      for (let bytes = 1024 * KiB; bytes > 4 * KiB; bytes /= 2) {
        try {
          for (;;) leases.push(allocBuffer(bytes - 4 * KiB, pair.channel));
        } catch {
          // The arena is now full.
        }
      }
      // The bytes are copied into the arena, because a device must not access such memory.
      const payload = changing(600 * KiB, how);
      const call = client.echo({ number: 1, payload: payload.view });
      const other = client.echo({ number: 2, text: 'x'.repeat(600 * KiB) });
      await client.echo({});
      payload.change();
      for (const lease of leases) lease.release();
      await expect(call.then(() => 'sent')).rejects.toThrow(gone);
      expect(await other).toMatchObject({ number: 2 });
      await pair.close();
    });

    test('fails a call between two attempts', async () => {
      let handled = 0;
      const payload = changing(1000, how);
      const echo = () => {
        ++handled;
        payload.change();
        throw new RpcError(Status.UNAVAILABLE, 'once more');
      };
      const pair = await openPair(way, (server) => server.add(EchoDefinition, { echo }));
      const client = createClient(EchoDefinition, pair.channel, {
        '*': { idempotent: true, retry: { attemptsMax: 3, backoffMs: 1 } },
      });
      await expect(client.echo({ payload: payload.view })).rejects.toThrow(gone);
      expect(handled).toBe(1);
      await pair.close();
    });

    test('fails a stream whose message waits in the queue', async () => {
      let read = (): void => {};
      const closed = () =>
        new Promise<void>((resolve) => {
          read = resolve;
        });
      let gate = closed();
      const sizes: number[] = [];
      const pair = await openPair(way, (server) =>
        server.add(StreamsDefinition, {
          sum: async (items) => {
            for await (const { payload } of items) {
              sizes.push(payload.length);
              await gate;
            }
            return {};
          },
        }),
      );
      const streams = createClient(StreamsDefinition, pair.channel);
      let payload: ReturnType<typeof changing> | undefined;
      async function* items() {
        for (;;) {
          payload = changing(20_000, how);
          yield { payload: payload.view };
        }
      }
      let isOver = false;
      const call = streams
        .sum(items())
        .then(
          () => 'sent',
          (error: unknown) => error,
        )
        .finally(() => {
          isOver = true;
        });
      while (!isOver) {
        // While the window is full, the generator is not called again. On a busy machine the window may only
        // seem full, and the message has already been sent. Then the next message is tried.
        for (let quiet = 0, last = payload; quiet < 50 && !isOver; last = payload) {
          await turn();
          quiet = payload === last && payload !== undefined ? quiet + 1 : 0;
        }
        const changed = payload;
        changed?.change();
        read();
        while (!isOver && payload === changed) await turn();
        gate = closed();
      }
      expect(await call).toMatchObject({ message: expect.stringMatching(gone) });
      expect([...new Set(sizes)]).toEqual([20_000]);
      read();
      await pair.close();
    });

    test('lets a reverse call send the bytes of the moment', async () => {
      let peers: Peers | undefined;
      const pair = await openPair(way, (server) => {
        peers = peersOf(server);
      });
      const reverse = serveReverse(pair.channel)
        .add(EchoDefinition, { echo: (request) => request })
        .add(service, { Echo: (blob: Blob) => blob });
      await reverse.ready;
      while (peers!.all.length === 0) await turn();
      const client = peers!.client(EchoDefinition, peers!.all[0]!);
      const plain = peers!.client(service, peers!.all[0]!);
      for (const bytes of [100, 20_000, 300_000]) {
        const [payload, blob] = [1, 2].map(() => changing(bytes, how));
        const sent = payload!.view.slice();
        const calls = [
          client.echo({ payload: payload!.view }).then((reply) => reply.payload),
          plain.Echo({ blob: blob!.view }).then((reply) => reply.blob),
        ];
        for (const each of [payload, blob]) each!.change();
        for (const reply of await Promise.all(calls)) expect(Buffer.compare(reply, sent)).toBe(0);
      }
      const late = changing(100, how);
      late.change();
      if (how === 'detached')
        await expect(client.echo({ payload: late.view })).rejects.toThrow(/transferred or detached/);
      await reverse.close();
      await pair.close();
    });
  },
);
