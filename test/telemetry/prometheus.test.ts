/** Tests the Prometheus interceptor, tested by the contents of a registry. */
import { Registry } from 'prom-client';
import { createClient, RpcError, Status, stats } from 'rdma-rpc';
import { collectAddresses, collectDeviceCounters, collectNativeStats, prometheus } from 'rdma-rpc/prometheus';
import { afterEach, expect, test, vi } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { openPair, type Pair } from '../runtime/pair.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { collect } from '../stream/stream-world.ts';
import { newLog, streamHandlers } from '../stream/streams-service.ts';

const read = vi.hoisted(() => vi.fn());
vi.mock('../../runtime/counters/device-counters.ts', () => ({ readDeviceCounters: read }));

let pair: Pair | undefined;
afterEach(() => pair?.close());

/** Returns the lines of a metric, without the rest of the text. */
async function lines(registry: Registry, name: string): Promise<string[]> {
  const text = await registry.metrics();
  return text.split('\n').filter((line) => line.startsWith(name));
}

async function open(registry: Registry) {
  const count = prometheus({ registry });
  pair = await openPair('sim', (server) =>
    server.use(count).add(StreamsDefinition, {
      ...streamHandlers(newLog()),
      unary: () => {
        throw new RpcError(Status.NOT_FOUND, 'no');
      },
    }),
  );
  return createClient(StreamsDefinition, pair.channel, { '*': { interceptors: [count] } });
}

test('counts calls by method, kind and status, and times them', async () => {
  const registry = new Registry();
  const client = await open(registry);
  await collect(client.count({ count: 2 }));
  await client.sum([{ number: 1 }]);
  await collect(client.echo([]));
  await client.unary({}).catch(() => undefined);
  for (const side of ['client', 'server']) {
    const labels = (method: string, type: string) =>
      `service="test.stream.Streams",method="${method}",type="${type}"`;
    const kinds = [
      labels('Count', 'server_stream'),
      labels('Sum', 'client_stream'),
      labels('Echo', 'bidi'),
      labels('Unary', 'unary'),
    ];
    const codes = ['OK', 'OK', 'OK', 'NOT_FOUND'];
    const name = `rdma_rpc_${side}`;
    expect(await lines(registry, `${name}_started_total`)).toEqual(
      kinds.map((kind) => `${name}_started_total{${kind}} 1`),
    );
    expect(await lines(registry, `${name}_handled_total`)).toEqual(
      kinds.map((kind, i) => `${name}_handled_total{${kind},code="${codes[i]}"} 1`),
    );
    expect(await lines(registry, `${name}_handling_seconds_count`)).toHaveLength(4);
    const buckets = await lines(registry, `${name}_handling_seconds_bucket{le="0.000001"`);
    expect(buckets).toHaveLength(4);
  }
});

test('two interceptors on one registry count together', async () => {
  const registry = new Registry();
  for (const client of [await open(registry), await open(registry)]) await collect(client.echo([]));
  const [line] = await lines(registry, 'rdma_rpc_client_started_total');
  expect(line).toMatch(/ 2$/);
});

test('native counters are gauges with the current values', async () => {
  const registry = new Registry();
  collectNativeStats(registry);
  collectNativeStats(registry);
  const client = await open(registry);
  await collect(client.echo([]));
  const gauges = await lines(registry, 'rdma_rpc_native_');
  expect(gauges).toHaveLength(Object.keys(stats()).length);
  expect(gauges).toContain(`rdma_rpc_native_sessions ${stats().sessions}`);
  expect(stats().sessions).toBeGreaterThan(0);
});

test('native counters of a process by its number are current, however often they are read', async () => {
  const registry = new Registry();
  const client = await open(registry);
  await collect(client.echo([]));
  collectNativeStats(registry, process.pid);
  let aheadMs = 0;
  const now = performance.now.bind(performance);
  replaceClock(() => now() + aheadMs);
  const read = async () => {
    // A reading is kept only for the duration of a scrape.
    aheadMs += 1000;
    const [line] = await lines(registry, 'rdma_rpc_native_sessions ');
    return Number(line?.split(' ')[1]);
  };
  const sessions: number[] = [];
  try {
    // A thread writes its page at most ten times a second, perhaps just before this session existed.
    await vi.waitFor(async () => expect(await read()).toBeGreaterThan(0), { timeout: 10_000 });
    for (let round = 0; round < 3; ++round) sessions.push(await read());
  } finally {
    replaceClock(undefined);
  }
  // No session is opened during the test, but sessions of the previous test may end.
  const [first] = sessions;
  expect(first).toBeGreaterThan(0);
  for (const each of sessions) expect(each).toBeLessThanOrEqual(first!);
});

test('counters of devices are one gauge, by the names of kernel and driver', async () => {
  const registry = new Registry();
  collectDeviceCounters(registry);
  collectDeviceCounters(registry);
  let devices = [{ device: 'mlx5_0', port: 1, counters: { out_of_sequence: 12, np_cnp_sent: 0 } }];
  read.mockImplementation(async () => devices);
  const name = 'rdma_rpc_device_counter{';
  expect(await lines(registry, name)).toEqual([
    `${name}device="mlx5_0",port="1",counter="out_of_sequence"} 12`,
    `${name}device="mlx5_0",port="1",counter="np_cnp_sent"} 0`,
  ]);
  devices = [];
  expect(await lines(registry, name)).toEqual([]);
});

test('the addresses of channels are a gauge, until their channel is closed', async () => {
  const registry = new Registry();
  const address = (zone: string | undefined, state: string, stale = false) => ({ zone, state, stale });
  const shop = {
    address: 'resolver',
    state: 'ready',
    addresses: [address('a', 'ready'), address('a', 'ready'), address(undefined, 'failing', true)],
  };
  collectAddresses(shop, { registry, name: 'shop' });
  collectAddresses(shop, { registry, name: 'shop' });
  collectAddresses({ ...shop, addresses: [address('b', 'idle')] }, { registry });
  const name = 'rdma_rpc_channel_addresses';
  expect(await lines(registry, name)).toEqual([
    `${name}{channel="shop",zone="a",state="ready",stale="false"} 2`,
    `${name}{channel="shop",zone="",state="failing",stale="true"} 1`,
    `${name}{channel="resolver",zone="b",state="idle",stale="false"} 1`,
  ]);
  shop.state = 'closed';
  expect(await lines(registry, name)).toHaveLength(1);
});
