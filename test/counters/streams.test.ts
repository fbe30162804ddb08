/**
 * Tests the counters of streams. Each stream is one call of its method, and its contents are counted as
 * messages, regardless of the parts in which they travel.
 */
import { createClient, leaseOf } from 'rdma-rpc';
import { readCounters } from 'rdma-rpc/counters';
import { afterEach, describe, expect, test } from 'vitest';
import { openContexts } from '../../runtime/boundary/contexts.ts';
import { addStats, type Stats } from '../../runtime/native/native.ts';
import { ways } from '../runtime/world.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { caught, collect, openStreams, type StreamWorld } from '../stream/stream-world.ts';

const { methods } = StreamsDefinition;

describe.each(ways)('%s', (way) => {
  let world: StreamWorld | undefined;
  afterEach(async () => {
    await world?.close();
    world = undefined;
  });

  /**
   * Returns a function that returns what both sides, which run on this thread, have counted since its last
   * call.
   */
  async function counting() {
    world = await openStreams(way);
    const client = createClient(StreamsDefinition, world.channel);
    await client.unary({});
    // Only this world's context is used, because the counters of an earlier context disappear with that
    // context.
    const own = openContexts().filter(({ native }) => native.stats().sessions > 0);
    const stats = () => {
      const sum: Partial<Stats> = {};
      for (const { native } of own) addStats(sum, native.stats());
      return sum as Stats;
    };
    const before = stats();
    return {
      client,
      counted: () => {
        const now = stats();
        const since = (name: keyof typeof now) => now[name] - before[name];
        return {
          calls: since('calls'),
          requests: since('requests'),
          sent: since('streamMessagesSent'),
          received: since('streamMessagesReceived'),
        };
      },
    };
  }

  const items = (count: number, bytes = 0) =>
    Array.from({ length: count }, (_, number) => ({ number, payload: new Uint8Array(bytes) }));

  test.each([
    ['no message', 0, 0],
    ['one', 1, 0],
    ['many in few parts', 5000, 0],
    ['large ones, each a part', 20, 100_000],
  ])('a stream of the server with %s is one call', async (_, count, bytes) => {
    const { client, counted } = await counting();
    for await (const item of client.count({ count, bytes })) leaseOf(item)?.release();
    // The request is counted too, because it is also a message.
    expect(counted()).toEqual({ calls: 1, requests: 1, sent: count + 1, received: count + 1 });
  });

  test('a stream of the client and a stream in both directions are counted', async () => {
    const { client, counted } = await counting();
    await client.sum(items(3000));
    expect(counted()).toEqual({ calls: 1, requests: 1, sent: 3001, received: 3001 });
    await collect(client.echo(items(40, 50_000)));
    expect(counted()).toEqual({ calls: 2, requests: 2, sent: 3081, received: 3081 });
  });

  test('calls that are not streams are counted as before', async () => {
    const { client, counted } = await counting();
    for (let i = 0; i < 3; ++i) await client.unary({});
    expect(counted()).toEqual({ calls: 3, requests: 3, sent: 0, received: 0 });
  });

  test('a stream is one call in flight as long as it is open', async () => {
    const { client } = await counting();
    const open = [
      client.count({ count: 1000, bytes: 20_000 }),
      client.count({ count: 1000, bytes: 20_000 }),
    ].map((stream) => stream[Symbol.asyncIterator]());
    for (const stream of open) await stream.next();
    const { channel, server } = world!;
    /**
     * Returns the calls in flight of the session as each side sees it. One process has only one session here.
     */
    const inFlight = () => [
      ...new Set([channel.session!, ...(server?.sessions ?? [])].map(({ callsInFlight }) => callsInFlight)),
    ];
    expect(inFlight()).toEqual([2]);
    await open[0]!.return?.();
    await expect.poll(inFlight).toEqual([1]);
    await open[1]!.return?.();
    await expect.poll(inFlight).toEqual([0]);
  });

  test.runIf(way !== 'in process, loopback')(
    'its method has a row on both sides, timed from the beginning to the end',
    async () => {
      const { client } = await counting();
      const rows = () =>
        readCounters(process.pid)
          .contexts.filter(({ sessions }) => sessions.length > 0)
          .flatMap((context) => context.methods)
          .filter(({ calls }) => calls > 0);
      const calls = (side: string, name: string) =>
        rows()
          .filter((row) => row.side === side && row.name === name)
          .reduce((sum, row) => ({ calls: sum.calls + row.calls, failed: sum.failed + row.failed }), {
            calls: 0,
            failed: 0,
          });
      // The page is written some time after a change.
      await expect.poll(() => rows().some(({ name }) => name === methods.unary.fullName)).toBe(true);
      const before = new Map(
        ['client', 'server'].flatMap((side) =>
          [methods.count, methods.behave].map(
            ({ fullName }) => [side + fullName, calls(side, fullName)] as const,
          ),
        ),
      );
      await collect(client.count({ count: 2000 }));
      await collect(client.count({ count: 1 }));
      await caught(() => collect(client.behave({ count: 3, text: 'not found' })));
      for (const side of ['client', 'server']) {
        const since = ({ fullName }: { fullName: string }) => {
          const now = calls(side, fullName);
          const then = before.get(side + fullName)!;
          return { calls: now.calls - then.calls, failed: now.failed - then.failed };
        };
        await expect.poll(() => since(methods.count)).toEqual({ calls: 2, failed: 0 });
        await expect.poll(() => since(methods.behave)).toEqual({ calls: 1, failed: 1 });
      }
      // Parts have no method, so the output must show neither the name of another method nor an empty name.
      const known = new Set([...Object.values(methods).map(({ fullName }) => fullName)]);
      expect(rows().filter(({ name }) => name === '' || name === '(other methods)')).toEqual([]);
      expect(rows().some(({ name }) => known.has(name))).toBe(true);
    },
  );
});
