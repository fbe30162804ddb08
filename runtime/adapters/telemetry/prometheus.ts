/**
 * `rdma-rpc/prometheus`: counts and durations of calls by method and status, and the counters of the native
 * layers. It uses prom-client, which is an optional peer dependency. The same interceptor works for clients
 * and servers.
 */
import { Counter, Gauge, Histogram, type Registry, register } from 'prom-client';
import { clockMs } from '../../clock.ts';
import { stats } from '../../control/configure.ts';
import { disown } from '../../core/foreign.ts';
import type { Interceptor, RpcRequest } from '../../core/interceptor.ts';
import { readDeviceCounters } from '../../counters/device-counters.ts';
import type { ContextCounters } from '../../counters/page.ts';
import { readCounters } from '../../counters/processes.ts';
import { addStats, type Stats } from '../../native/native.ts';
import { durationBounds, type Observer, observedCall } from './observed-call.ts';

export type { ThreadMetrics, ThreadMetricsSource } from '../../core/thread-metrics.ts';
export { type CollectAddressesOptions, collectAddresses } from './channel-addresses.ts';
export type { ChannelAddresses } from './counted-addresses.ts';
export { workersRegistry } from './workers-registry.ts';

export interface PrometheusOptions {
  /** Default: prom-client's global registry. */
  registry?: Registry;
  /** Upper bounds of the buckets in seconds. Default: 1, 2, 5 per decade from 1 us to 10 s. */
  buckets?: readonly number[];
}

type Label = 'service' | 'method' | 'type';

/** Returns the kind of a method, by the name that other libraries use. */
function kindOf({ method }: RpcRequest): string {
  if (method.requestStream) return method.responseStream ? 'bidi' : 'client_stream';
  return method.responseStream ? 'server_stream' : 'unary';
}

interface SideMetrics {
  readonly started: Counter<Label>;
  readonly handled: Counter<Label | 'code'>;
  readonly seconds: Histogram<Label>;
}

/** Returns the metrics of a registry. Two interceptors with the same registry share its metrics. */
function metricsOf(registry: Registry, side: string, buckets: number[]): SideMetrics {
  const labelNames: Label[] = ['service', 'method', 'type'];
  const registers = [registry];
  const prefix = `rdma_rpc_${side}`;
  const known = (name: string) => disown(registry.getSingleMetric(`${prefix}_${name}`));
  return {
    started:
      (known('started_total') as Counter<Label> | undefined) ??
      new Counter({
        name: `${prefix}_started_total`,
        help: `Calls begun on the ${side}`,
        labelNames,
        registers,
      }),
    handled:
      (known('handled_total') as Counter<Label | 'code'> | undefined) ??
      new Counter({
        name: `${prefix}_handled_total`,
        help: `Calls ended on the ${side}, by status code`,
        labelNames: [...labelNames, 'code'],
        registers,
      }),
    seconds:
      (known('handling_seconds') as Histogram<Label> | undefined) ??
      new Histogram({
        name: `${prefix}_handling_seconds`,
        help: `Duration of calls on the ${side}`,
        labelNames,
        buckets,
        registers,
      }),
  };
}

/**
 * Returns an interceptor for a server (`use`), a channel or a client. The metrics of a side appear with the
 * first call of that side.
 */
export function prometheus(options: PrometheusOptions = {}): Interceptor {
  const { registry = register, buckets = durationBounds } = options;
  const sides = new Map<string, SideMetrics>();

  function begin(request: RpcRequest): Observer {
    const { side, service, method } = request;
    let metrics = sides.get(side);
    if (metrics === undefined) {
      metrics = metricsOf(registry, side, [...buckets]);
      sides.set(side, metrics);
    }
    const { started, handled, seconds } = metrics;
    const labels = { service: service.fullName, method: method.name, type: kindOf(request) };
    const startedMs = clockMs();
    started.inc(labels);
    return {
      run: (part) => part(),
      done(code) {
        handled.inc({ ...labels, code });
        seconds.observe(labels, (clockMs() - startedMs) / 1000);
      },
    };
  }

  return (next) => (request) => observedCall(next, request, () => begin(request));
}

/**
 * Time in ms for which a reading of the counters is kept. A scrape reads one gauge after the other; because
 * of this time, all gauges of a scrape show the same reading.
 */
const readingMs = 50;

function contextsOf(pid: number): readonly ContextCounters[] {
  try {
    return readCounters(pid).contexts;
  } catch {
    return [];
  }
}

/**
 * Returns a function that reads the counters of all threads of a process. The function adds up the counters
 * of all contexts of the process. For counters that hold a longest time, it takes the maximum.
 */
function statsOf(pid: number): () => Stats {
  const names = Object.keys(stats()) as (keyof Stats)[];
  let all = stats();
  let readMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (clockMs() - readMs < readingMs) return all;
    readMs = clockMs();
    all = Object.fromEntries(names.map((name) => [name, 0])) as unknown as Stats;
    for (const { counters } of contextsOf(pid)) addStats(all, counters);
    return all;
  };
}

/**
 * Exports the counters of the native layers as gauges `rdma_rpc_native_…`, which are read when the registry
 * is read. Without `pid` they are the counters of this thread (`stats()`). With `pid` they are the counters
 * of all threads of that process, from its counters pages, or 0 when the process has ended.
 */
export function collectNativeStats(registry: Registry = register, pid?: number): void {
  const read = pid === undefined ? stats : statsOf(pid);
  for (const counter of Object.keys(stats()) as (keyof Stats)[]) {
    const name = `rdma_rpc_native_${counter.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
    if (registry.getSingleMetric(name) !== undefined) continue;
    new Gauge({
      name,
      help: `${counter} of stats()`,
      registers: [registry],
      collect() {
        this.set(read()[counter]);
      },
    });
  }
}

/**
 * Exports the counters of the RDMA devices of this machine as one gauge, `rdma_rpc_device_counter`. Its
 * labels are `device`, `port` (0 for the device as a whole) and `counter`, which is the name that the kernel
 * or the driver uses. The gauge is read when the registry is read, and is empty when the machine has no
 * device. `devices` selects devices by name.
 */
export function collectDeviceCounters(registry: Registry = register, devices?: readonly string[]): void {
  const name = 'rdma_rpc_device_counter';
  if (registry.getSingleMetric(name) !== undefined) return;
  new Gauge({
    name,
    help: 'Counters of RDMA devices, by the names of their drivers',
    labelNames: ['device', 'port', 'counter'],
    registers: [registry],
    async collect() {
      const read = await readDeviceCounters(devices);
      // Remove old values, because a device may be gone.
      this.reset();
      for (const { device, port, counters } of read)
        for (const [counter, value] of Object.entries(counters)) this.set({ device, port, counter }, value);
    },
  });
}
