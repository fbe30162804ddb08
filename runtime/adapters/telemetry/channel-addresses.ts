/**
 * The addresses of channels as a gauge: their number by zone and state, and whether their registry has
 * failed. The totals of channels are counters. Both are read when the registry of the metrics is read.
 */
import { Counter, Gauge, type Registry, register } from 'prom-client';
import { checkNames } from '../../core/options.ts';
import { type ChannelAddresses, countedAddresses } from './counted-addresses.ts';
import { NamedChannels } from './named-channels.ts';
import { type ShownTotal, shownTotals } from './shown-totals.ts';

export interface CollectAddressesOptions {
  /** Default: prom-client's global registry. */
  registry?: Registry;
  /** The label `channel`. Default: the address that the channel was created with. */
  name?: string;
}

type Label = 'channel' | 'zone' | 'state' | 'stale';

const metric = 'rdma_rpc_channel_addresses';

/** The channels of each registry, which share its metrics. */
const collected = new WeakMap<Registry, NamedChannels>();

const counterName = ({ name }: ShownTotal): string => `rdma_rpc_channel_${name}_total`;

function addGauge(registry: Registry, all: NamedChannels): void {
  new Gauge<Label>({
    name: metric,
    help: 'Addresses of channels, by zone and state; stale when their source has failed',
    labelNames: ['channel', 'zone', 'state', 'stale'],
    registers: [registry],
    collect() {
      all.sweep();
      this.reset();
      for (const [channel, name] of all.channels)
        for (const { zone, state, stale, count } of countedAddresses(channel))
          this.inc({ channel: name, zone, state, stale: String(stale) }, count);
    },
  });
}

function addCounter(registry: Registry, all: NamedChannels, total: ShownTotal): void {
  new Counter<'channel'>({
    name: counterName(total),
    help: total.description,
    labelNames: ['channel'],
    registers: [registry],
    collect() {
      all.sweep();
      this.reset();
      for (const [channel, count] of all.totals(total.key)) this.inc({ channel }, count);
    },
  });
}

/**
 * Exports the number of addresses of a channel as a gauge `rdma_rpc_channel_addresses` with the labels
 * `channel`, `zone`, `state` and `stale`, until the channel is closed. Exports its totals as counters such as
 * `rdma_rpc_channel_picks_total` with the label `channel`.
 */
export function collectAddresses(channel: ChannelAddresses, options: CollectAddressesOptions = {}): void {
  checkNames('collectAddresses', options, ['registry', 'name']);
  const { registry = register, name = channel.address } = options;
  const all = collected.get(registry) ?? new NamedChannels();
  collected.set(registry, all);
  all.channels.set(channel, name);
  if (registry.getSingleMetric(metric) === undefined) addGauge(registry, all);
  for (const total of shownTotals)
    if (registry.getSingleMetric(counterName(total)) === undefined) addCounter(registry, all, total);
}
