/**
 * The addresses of channels as a gauge of OpenTelemetry: their number by zone and state, and whether their
 * registry has failed. The totals of channels are counters. Both are read when the metrics are exported.
 */
import { type Meter, type MeterProvider, metrics, type ObservableResult } from '@opentelemetry/api';
import { checkNames } from '../../core/options.ts';
import { type ChannelAddresses, type CountedAddresses, countedAddresses } from './counted-addresses.ts';
import { NamedChannels } from './named-channels.ts';
import { type ShownTotal, shownTotals } from './shown-totals.ts';

export interface ObserveAddressesOptions {
  /** Default: the global meter provider, which must be registered before the call. */
  meterProvider?: MeterProvider;
  /** The attribute `channel`. Default: the address that the channel was created with. */
  name?: string;
}

/** The channels of each meter provider. Channels of one name share their metrics. */
const observed = new WeakMap<MeterProvider, NamedChannels>();

function addGauge(meter: Meter, all: NamedChannels): void {
  const gauge = meter.createObservableGauge('rdma_rpc.channel.addresses', {
    description: 'Addresses of channels, by zone and state; stale when their source has failed',
    unit: '{address}',
  });
  /**
   * The SDK continues to export the last value for attributes that are not observed again, so this code
   * reports 0 for such attributes.
   */
  const counted = new Map<string, CountedAddresses[]>();
  gauge.addCallback((result: ObservableResult) => {
    all.sweep();
    const names = new Map([...counted.keys()].map((name) => [name, [] as ChannelAddresses['addresses']]));
    for (const [{ addresses }, name] of all.channels)
      names.set(name, [...(names.get(name) ?? []), ...addresses]);
    for (const [name, addresses] of names) {
      const counts = countedAddresses({ addresses }, counted.get(name));
      counted.set(name, counts);
      for (const { count, ...attributes } of counts) result.observe(count, { channel: name, ...attributes });
    }
  });
}

function addCounter(meter: Meter, all: NamedChannels, { key, name, unit, description }: ShownTotal): void {
  const counter = meter.createObservableCounter(`rdma_rpc.channel.${name}`, { unit, description });
  counter.addCallback((result: ObservableResult) => {
    all.sweep();
    for (const [channel, count] of all.totals(key)) result.observe(count, { channel });
  });
}

/**
 * Exports the number of addresses of a channel as a gauge `rdma_rpc.channel.addresses` with the attributes
 * `channel`, `zone`, `state` and `stale`, until the channel is closed. Exports its totals as counters such as
 * `rdma_rpc.channel.picks` with the attribute `channel`.
 */
export function observeAddresses(channel: ChannelAddresses, options: ObserveAddressesOptions = {}): void {
  checkNames('observeAddresses', options, ['meterProvider', 'name']);
  const { meterProvider = metrics.getMeterProvider(), name = channel.address } = options;
  let all = observed.get(meterProvider);
  if (all === undefined) {
    all = new NamedChannels();
    observed.set(meterProvider, all);
    const meter = meterProvider.getMeter('rdma-rpc');
    addGauge(meter, all);
    for (const total of shownTotals) addCounter(meter, all, total);
  }
  all.channels.set(channel, name);
}
