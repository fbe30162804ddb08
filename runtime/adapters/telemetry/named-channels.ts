/**
 * Maps names to the channels whose metrics one registry of prom-client, or one meter provider of
 * OpenTelemetry, shows. Several channels may have the same name. rdma-rpc/prometheus and rdma-rpc/otel use
 * this file when metrics are read.
 */
import type { ChannelAddresses } from './counted-addresses.ts';
import { type ShownTotal, shownTotals } from './shown-totals.ts';

type Key = ShownTotal['key'];

export class NamedChannels {
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

  /** Returns one of the totals for each name. */
  totals(key: Key): Map<string, number> {
    const sums = new Map<string, number>();
    const add = (name: string, count = 0): unknown => sums.set(name, (sums.get(name) ?? 0) + count);
    for (const [name, ended] of this.#ended) add(name, ended[key]);
    for (const [{ totals }, name] of this.channels) if (totals !== undefined) add(name, totals[key]);
    return sums;
  }
}
