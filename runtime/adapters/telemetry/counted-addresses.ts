/**
 * Counts the addresses of a channel by the labels of the metric: zone, state, and whether the channel's
 * source of addresses has failed. The gauges of rdma-rpc/prometheus and rdma-rpc/otel use this file.
 */

import type { ChannelTotals } from '../../core/channel-totals.ts';

/** The part of a channel that this file uses. */
export interface ChannelAddresses {
  readonly address: string;
  readonly state: string;
  readonly addresses: readonly {
    readonly zone: string | undefined;
    readonly state: string;
    readonly stale: boolean;
  }[];
  /** When it is undefined, only the addresses are shown. */
  readonly totals?: ChannelTotals;
}

/** A number of addresses that have these properties. */
export interface CountedAddresses {
  /** The value is '' when the addresses have no zone. */
  readonly zone: string;
  readonly state: string;
  readonly stale: boolean;
  readonly count: number;
}

/** Returns the counts that are not 0, and 0 for labels that occur only in `earlier`. */
export function countedAddresses(
  { addresses }: Pick<ChannelAddresses, 'addresses'>,
  earlier: readonly CountedAddresses[] = [],
): CountedAddresses[] {
  const keyOf = ({ zone, state, stale }: Omit<CountedAddresses, 'count'>): string =>
    JSON.stringify([zone, state, stale]);
  const counted = new Map(earlier.map((each) => [keyOf(each), { ...each, count: 0 }]));
  for (const { zone = '', state, stale } of addresses) {
    const key = keyOf({ zone, state, stale });
    counted.set(key, { zone, state, stale, count: (counted.get(key)?.count ?? 0) + 1 });
  }
  return [...counted.values()];
}
