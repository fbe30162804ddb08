/**
 * The addresses of channels as a gauge: their number by zone and state, and whether their registry has
 * failed. Read when the registry of the metrics is.
 */
import { Gauge, type Registry, register } from 'prom-client';
import { checkNames } from '../../core/options.ts';
import { type ChannelAddresses, countedAddresses } from './counted-addresses.ts';

export interface CollectAddressesOptions {
  /** Default: prom-client's global registry. */
  registry?: Registry;
  /** The label `channel`. Default: the address that the channel was created with. */
  name?: string;
}

type Label = 'channel' | 'zone' | 'state' | 'stale';

const metric = 'rdma_rpc_channel_addresses';
/** The channels of each registry, which share one gauge. */
const collected = new WeakMap<Registry, Map<ChannelAddresses, string>>();

function addGauge(registry: Registry, channels: Map<ChannelAddresses, string>): void {
  new Gauge<Label>({
    name: metric,
    help: 'Addresses of channels, by zone and state; stale when their source has failed',
    labelNames: ['channel', 'zone', 'state', 'stale'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [channel, name] of channels) {
        if (channel.state === 'closed') channels.delete(channel);
        else
          for (const { zone, state, stale, count } of countedAddresses(channel))
            this.inc({ channel: name, zone, state, stale: String(stale) }, count);
      }
    },
  });
}

/**
 * Exports the number of addresses of a channel as a gauge `rdma_rpc_channel_addresses` with the labels
 * `channel`, `zone`, `state` and `stale`, until the channel is closed.
 */
export function collectAddresses(channel: ChannelAddresses, options: CollectAddressesOptions = {}): void {
  checkNames('collectAddresses', options, ['registry', 'name']);
  const { registry = register, name = channel.address } = options;
  const channels = collected.get(registry) ?? new Map<ChannelAddresses, string>();
  collected.set(registry, channels);
  channels.set(channel, name);
  if (registry.getSingleMetric(metric) === undefined) addGauge(registry, channels);
}
