/**
 * The addresses of channels as a gauge of OpenTelemetry: their number by zone and state, and whether their
 * registry has failed. The totals of channels are counters. Both are read when the metrics are exported.
 */
import { type Meter, type MeterProvider, metrics, type ObservableResult } from '@opentelemetry/api';
import { checkNames } from '../../core/options.ts';
import { type ChannelAddresses, type CountedAddresses, countedAddresses } from './counted-addresses.ts';
import { shownTotals } from './shown-totals.ts';

export interface ObserveAddressesOptions {
  /** Default: the global meter provider, which must be registered before the call. */
  meterProvider?: MeterProvider;
  /** The attribute `channel`. Default: the address that the channel was created with. */
  name?: string;
}

/** The totals of a closed channel are observed once more, since the last export. */
function observeTotals(meter: Meter, channel: ChannelAddresses, name: string): void {
  for (const { key, name: metric, unit, description } of shownTotals) {
    const counter = meter.createObservableCounter(`rdma_rpc.channel.${metric}`, { unit, description });
    const observe = (result: ObservableResult): void => {
      if (channel.totals !== undefined) result.observe(channel.totals[key], { channel: name });
      if (channel.state === 'closed') counter.removeCallback(observe);
    };
    counter.addCallback(observe);
  }
}

/**
 * Exports the number of addresses of a channel as a gauge `rdma_rpc.channel.addresses` with the attributes
 * `channel`, `zone`, `state` and `stale`, and its totals as counters such as `rdma_rpc.channel.picks` with
 * the attribute `channel`, until the channel is closed.
 */
export function observeAddresses(channel: ChannelAddresses, options: ObserveAddressesOptions = {}): void {
  checkNames('observeAddresses', options, ['meterProvider', 'name']);
  const { meterProvider = metrics, name = channel.address } = options;
  const meter = meterProvider.getMeter('rdma-rpc');
  const gauge = meter.createObservableGauge('rdma_rpc.channel.addresses', {
    description: 'Addresses of channels, by zone and state; stale when their source has failed',
    unit: '{address}',
  });
  /**
   * The SDK continues to export the last value of attributes that are not observed again, so their value is
   * set to 0.
   */
  let counted: CountedAddresses[] = [];
  const observe = (result: ObservableResult): void => {
    const closed = channel.state === 'closed';
    counted = countedAddresses(closed ? { addresses: [] } : channel, counted);
    for (const { count, ...attributes } of counted) result.observe(count, { channel: name, ...attributes });
    if (closed) gauge.removeCallback(observe);
  };
  gauge.addCallback(observe);
  observeTotals(meter, channel, name);
}
