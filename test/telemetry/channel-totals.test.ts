/**
 * Tests which events count in the totals of a channel, and the names of the totals in the exporters and the
 * guide.
 */
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { Registry } from 'prom-client';
import { createClient, type Resolver } from 'rdma-rpc';
import { observeAddresses } from 'rdma-rpc/otel';
import { collectAddresses } from 'rdma-rpc/prometheus';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { shownTotals } from '../../runtime/adapters/telemetry/shown-totals.ts';
import { Bed, until } from '../channel/bed.ts';
import { read } from '../house/tree.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
});
afterEach(() => bed.close());

test('calls, connections, drains and losses are counted', async () => {
  let push: (servers: string[]) => void = () => undefined;
  const resolver: Resolver = {
    resolve: async () => ['a:1', 'b:1'],
    watch: (onChange) => {
      push = onChange;
      return () => undefined;
    },
  };
  bed.start('a:1', 'b:1');
  const channel = bed.channel(resolver, { backoffMs: 1, backoffMaxMs: 1 });
  const client = createClient(EchoDefinition, channel);
  const connected = (count: number) =>
    until(() => channel.addresses.filter(({ state }) => state === 'ready').length === count);
  const nothing = { picks: 0, connects: 0, reconnects: 0, connectFailures: 0, drains: 0, losses: 0 };
  expect(channel.totals).toEqual(nothing);

  await channel.ready();
  await connected(2);
  for (let i = 0; i < 7; ++i) await client.fetch({});
  expect(channel.totals).toEqual({ ...nothing, picks: 7, connects: 2 });

  // A connection that is lost comes back.
  bed.far('a:1').destroy();
  await until(() => channel.totals.losses === 1);
  await client.fetch({});
  await until(() => channel.totals.reconnects === 1);
  expect(channel.totals).toEqual({ ...nothing, picks: 8, connects: 3, reconnects: 1, losses: 1 });

  // A server that drains is no loss.
  await connected(2);
  await bed.stop('b:1', 1000);
  await until(() => channel.totals.drains === 1);
  await client.fetch({});
  await until(() => channel.totals.connectFailures > 0);
  const { connectFailures } = channel.totals;
  expect(channel.totals).toMatchObject({ picks: 9, connects: 3, losses: 1, connectFailures });

  // An address that leaves the list is no loss either, nor is the end of the channel.
  bed.start('c:1');
  push(['c:1']);
  await until(() => channel.totals.connects === 4);
  await until(() => channel.totals.drains === 2);
  expect(await client.fetch({})).toMatchObject({ text: 'c:1' });
  await channel.close();
  expect(channel.totals).toMatchObject({ picks: 10, connects: 4, reconnects: 1, drains: 2, losses: 1 });
});

test('both exporters have a counter for each, which stays when its channel is closed', async () => {
  const registry = new Registry();
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  bed.start('a:1');
  const open = async (calls: number) => {
    const channel = bed.channel(['a:1']);
    collectAddresses(channel, { registry, name: 'shop' });
    observeAddresses(channel, { meterProvider, name: 'shop' });
    for (let i = 0; i < calls; ++i) await createClient(EchoDefinition, channel).fetch({});
    return channel;
  };
  const prometheus = async (): Promise<readonly string[]> =>
    (await registry.metrics()).split('\n').filter((line) => /_total\{/.test(line));
  const otel = async (): Promise<object> => {
    exporter.reset();
    await reader.forceFlush();
    const all = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    const counters = all.flatMap(({ metrics }) => metrics).filter((each) => 'isMonotonic' in each);
    return Object.fromEntries(
      counters.map(({ descriptor, dataPoints }) => [
        descriptor.name,
        dataPoints.map(({ attributes, value }) => [attributes.channel, value]),
      ]),
    );
  };
  const expected = (picks: number, connects: number): string[] => [
    `rdma_rpc_channel_picks_total{channel="shop"} ${picks}`,
    `rdma_rpc_channel_connects_total{channel="shop"} ${connects}`,
    'rdma_rpc_channel_reconnects_total{channel="shop"} 0',
    'rdma_rpc_channel_connect_failures_total{channel="shop"} 0',
    'rdma_rpc_channel_drains_total{channel="shop"} 0',
    'rdma_rpc_channel_losses_total{channel="shop"} 0',
  ];

  const first = await open(3);
  expect(await prometheus()).toEqual(expected(3, 1));
  expect(await otel()).toEqual({
    'rdma_rpc.channel.picks': [['shop', 3]],
    'rdma_rpc.channel.connects': [['shop', 1]],
    'rdma_rpc.channel.reconnects': [['shop', 0]],
    'rdma_rpc.channel.connect_failures': [['shop', 0]],
    'rdma_rpc.channel.drains': [['shop', 0]],
    'rdma_rpc.channel.losses': [['shop', 0]],
  });
  await first.close();
  expect(await prometheus()).toEqual(expected(3, 1));
  const second = await open(2);
  expect(await prometheus()).toEqual(expected(5, 2));
  expect(await otel()).toMatchObject({
    'rdma_rpc.channel.picks': [['shop', 5]],
    'rdma_rpc.channel.connects': [['shop', 2]],
  });
  // Two open channels of one name are counted together.
  await open(1);
  expect(await prometheus()).toEqual(expected(6, 3));
  expect(await otel()).toMatchObject({
    'rdma_rpc.channel.picks': [['shop', 6]],
  });
  await second.close();
  expect(await otel()).toMatchObject({ 'rdma_rpc.channel.picks': [['shop', 6]] });
  await meterProvider.shutdown();
});

test('the guide has a row for each', () => {
  const rows = [...read('docs/guides/observability.md').matchAll(/^\| `(\w+)` \| `rdma_rpc\..*$/gm)];
  expect(rows.map(([row]) => row.split(' | ').slice(0, 3).join(' | '))).toEqual(
    shownTotals.map(
      ({ key, name }) => `| \`${key}\` | \`rdma_rpc.channel.${name}\` | \`rdma_rpc_channel_${name}_total\``,
    ),
  );
});
