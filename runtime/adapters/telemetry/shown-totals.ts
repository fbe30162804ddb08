/**
 * The totals of a channel, as metrics show them. The counters of rdma-rpc/prometheus and rdma-rpc/otel use
 * this file; they differ only in the form of their names.
 */
import type { ChannelTotals } from '../../core/channel-totals.ts';

export interface ShownTotal {
  readonly key: keyof ChannelTotals;
  /** The last word of the metric's name. */
  readonly name: string;
  readonly unit: string;
  readonly description: string;
}

export const shownTotals: readonly ShownTotal[] = [
  {
    key: 'picks',
    name: 'picks',
    unit: '{call}',
    description: 'Calls and streams that were given to a connection',
  },
  { key: 'connects', name: 'connects', unit: '{connection}', description: 'Addresses that were connected' },
  {
    key: 'reconnects',
    name: 'reconnects',
    unit: '{connection}',
    description: 'Addresses that were connected again',
  },
  {
    key: 'connectFailures',
    name: 'connect_failures',
    unit: '{attempt}',
    description: 'Attempts to connect that failed',
  },
  {
    key: 'drains',
    name: 'drains',
    unit: '{connection}',
    description: 'Connections that were left because of a drain, of silence or of a new list',
  },
  {
    key: 'losses',
    name: 'losses',
    unit: '{connection}',
    description: 'Connections that ended without an announcement',
  },
];
