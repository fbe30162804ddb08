/**
 * Tests that the failure of a registry is visible outside of the channel: in the gauges of Prometheus and
 * OpenTelemetry, and in the counters page that `rdma-rpc top` shows.
 */
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { Registry } from 'prom-client';
import { type Channel, createChannel, createServer, type Resolver } from 'rdma-rpc';
import { readCounters } from 'rdma-rpc/counters';
import { observeAddresses } from 'rdma-rpc/otel';
import { collectAddresses } from 'rdma-rpc/prometheus';
import { afterEach, expect, test } from 'vitest';
import { until } from '../outcomes.ts';

const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

interface Source extends Resolver {
  fails: boolean;
  push(): void;
}

/** Connects a channel to a server of this process, by a registry that a test makes fail. */
async function connected(): Promise<{ source: Source; channel: Channel; address: string }> {
  const server = createServer({ fabric: 'shm' });
  const address = await server.listen('127.0.0.1:0');
  ending.push(() => server.shutdown({ graceMs: 0 }));
  const source: Source = {
    fails: false,
    push: () => undefined,
    resolve: () =>
      source.fails
        ? Promise.reject(new Error('the registry is down'))
        : Promise.resolve([{ address, zone: 'a' }]),
    watch: (onChange) => {
      source.push = onChange;
      return () => undefined;
    },
  };
  const channel = createChannel(source, { fabric: 'shm', resolveMinMs: 0, backoffMs: 10, backoffMaxMs: 10 });
  ending.push(() => channel.close());
  await channel.ready();
  return { source, channel, address };
}

test('stale addresses are shown as stale until the registry is available again', async () => {
  const { source, channel, address } = await connected();
  const registry = new Registry();
  collectAddresses(channel, { registry, name: 'shop' });
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  ending.push(() => meterProvider.shutdown());
  observeAddresses(channel, { meterProvider, name: 'shop' });

  const prometheus = async (): Promise<readonly string[]> =>
    (await registry.metrics()).split('\n').filter((line) => line.startsWith('rdma_rpc_channel_addresses{'));
  const otel = async (): Promise<object[]> => {
    exporter.reset();
    await reader.forceFlush();
    const all = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    const [gauge] = all.flatMap(({ metrics }) => metrics);
    expect(gauge?.descriptor.name ?? 'rdma_rpc.channel.addresses').toBe('rdma_rpc.channel.addresses');
    const points = (gauge?.dataPoints ?? []).map(({ attributes, value }) => ({ ...attributes, value }));
    return points.filter(({ value }) => value !== 0);
  };
  const peers = (): string[] =>
    readCounters(process.pid).contexts.flatMap(({ sessions }) =>
      sessions.filter(({ side }) => side === 'client').map(({ peer }) => peer.replace(/ \(.*\)/, '')),
    );
  const shown = async (stale: boolean): Promise<void> => {
    await until(() => channel.addresses[0]!.stale === stale);
    expect(await prometheus()).toEqual([
      `rdma_rpc_channel_addresses{channel="shop",zone="a",state="ready",stale="${stale}"} 1`,
    ]);
    expect(await otel()).toEqual([{ channel: 'shop', zone: 'a', state: 'ready', stale, value: 1 }]);
    await until(() => peers().includes(stale ? `${address}, stale` : address));
    expect(peers()).toEqual([stale ? `${address}, stale` : address]);
  };

  await shown(false);
  source.fails = true;
  source.push();
  await shown(true);
  source.fails = false;
  await shown(false);
  await channel.close();
  expect(await prometheus()).toEqual([]);
  expect(await otel()).toEqual([]);
});
