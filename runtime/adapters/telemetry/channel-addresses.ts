/**
 * The addresses of channels as a gauge: their number by zone and state, and whether their registry has
 * failed. The totals of channels are counters. Both are read when the registry of the metrics is.
 */
import { Counter, Gauge, type Registry, register } from 'prom-client';
import { checkNames } from '../../core/options.ts';
import { type ChannelAddresses, countedAddresses } from './counted-addresses.ts';
import { type ShownTotal, shownTotals } from './shown-totals.ts';

export interface CollectAddressesOptions {
  /** Default: prom-client's global registry. */
  registry?: Registry;
  /** The label `channel`. Default: the address that the channel was created with. */
  name?: string;
}

type Label = 'channel' | 'zone' | 'state' | 'stale';
type Key = ShownTotal['key'];

const metric = 'rdma_rpc_channel_addresses';

/** The channels of one registry, which share its metrics. */
class Collected {
  readonly channels = new Map<ChannelAddresses, string>();
  /** The totals of closed channels by their names, because counters do not shrink. */
  readonly #ended = new Map<string, Partial<Record<Key, number>>>();

  /** Forgets the closed channels, except for their totals. */
  sweep(): void {
    for (const [channel, name] of this.channels) {
      if (channel.state !== 'closed') continue;
      this.channels.delete(channel);
      if (channel.totals === undefined) continue;
      const sums = this.#ended.get(name) ?? {};
      for (const { key } of shownTotals) sums[key] = (sums[key] ?? 0) + channel.totals[key];
      this.#ended.set(name, sums);
    }
  }

  /** Returns one of the totals for each name. Several channels may have the same name. */
  totals(key: Key): Map<string, number> {
    const sums = new Map<string, number>();
    const add = (name: string, count = 0): unknown => sums.set(name, (sums.get(name) ?? 0) + count);
    for (const [name, ended] of this.#ended) add(name, ended[key]);
    for (const [{ totals }, name] of this.channels) if (totals !== undefined) add(name, totals[key]);
    return sums;
  }
}

const collected = new WeakMap<Registry, Collected>();

function addGauge(registry: Registry, all: Collected): void {
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

function addCounter(registry: Registry, all: Collected, { key, name, description }: ShownTotal): void {
  new Counter<'channel'>({
    name: `rdma_rpc_channel_${name}_total`,
    help: description,
    labelNames: ['channel'],
    registers: [registry],
    collect() {
      all.sweep();
      this.reset();
      for (const [channel, count] of all.totals(key)) this.inc({ channel }, count);
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
  const all = collected.get(registry) ?? new Collected();
  collected.set(registry, all);
  all.channels.set(channel, name);
  if (registry.getSingleMetric(metric) !== undefined) return;
  addGauge(registry, all);
  for (const total of shownTotals) addCounter(registry, all, total);
}
