/**
 * Collects the metrics of an application that exports everything: a server and a client with the package's
 * metrics and those of examples/dashboard/fleet.ts. The tests compare the metrics that dashboards, alerts and
 * manifests name with these.
 */
import { Registry } from 'prom-client';
import { createChannel, createClient, createServer } from 'rdma-rpc';
import { addHealth } from 'rdma-rpc/health';
import { collectDeviceCounters, collectNativeStats, prometheus } from 'rdma-rpc/prometheus';
import { collectChannel, collectServer, countConnections } from '../../examples/dashboard/fleet.ts';
import { gauges, noStats, type Stats } from '../../runtime/native/stats.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

/** The part of a metric that prom-client's types do not declare. */
interface Described {
  readonly name: string;
  readonly labelNames: readonly string[];
}

export interface Exported {
  /** The samples by name, with their labels. Prometheus adds `instance` and `job`. */
  readonly labels: ReadonlyMap<string, ReadonlySet<string>>;
  /** The names of samples that only grow. */
  readonly counters: ReadonlySet<string>;
  /** The text that the application returns to Prometheus. */
  readonly text: string;
}

/** These samples only grow although they are exported as gauges. */
const growing = new Set([
  'rdma_rpc_device_counter',
  ...Object.keys(noStats)
    .filter((name) => !gauges.has(name as keyof Stats))
    .map((name) => `rdma_rpc_native_${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`),
]);

/** A registration that has not reached its registry. */
const registration = {
  registered: false,
  ready: () => Promise.resolve(),
  close: () => Promise.resolve(),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

export async function exported(): Promise<Exported> {
  const registry = new Registry();
  collectNativeStats(registry);
  collectDeviceCounters(registry);
  const count = prometheus({ registry });
  const server = createServer({ onSession: countConnections(registry) }).use(count);
  collectServer(server, { health: addHealth(server), registration }, registry);
  server.add(EchoDefinition, { echo: (r) => r });
  const channel = createChannel(await server.listen('127.0.0.1:0'), { interceptors: [count] });
  collectChannel(channel, 'echo', registry);
  await createClient(EchoDefinition, channel).echo({ text: 'hi' });
  const text = await registry.metrics();
  const labels = new Map<string, Set<string>>();
  const counters = new Set<string>();
  const kinds = new Map((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]));
  for (const { name, labelNames } of registry.getMetricsAsArray() as unknown as Described[]) {
    const own = ['instance', 'job', ...labelNames];
    if (kinds.get(name) === 'histogram') {
      for (const part of ['bucket', 'sum', 'count']) {
        labels.set(`${name}_${part}`, new Set(part === 'bucket' ? [...own, 'le'] : own));
        counters.add(`${name}_${part}`);
      }
      continue;
    }
    labels.set(name, new Set(own));
    if (kinds.get(name) === 'counter' || growing.has(name)) counters.add(name);
  }
  await channel.close();
  await server.shutdown({ graceMs: 0 });
  return { labels, counters, text };
}
