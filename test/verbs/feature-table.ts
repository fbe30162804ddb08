/**
 * Reads the table of features in docs/reference/verbs-features.md, for the tests that compare it with the
 * sources and with devices.
 */
import { readFileSync } from 'node:fs';
import type { Feature } from 'rdma-rpc/verbs';

export const columns = ['sim', 'shm', 'tcp', 'rxe', 'siw'] as const;
export type Column = (typeof columns)[number];

export interface FeatureRow {
  readonly feature: string;
  readonly sessions: string;
  readonly api: string;
  readonly on: Readonly<Record<Column, string>>;
  readonly why: string;
}

/** Returns the rows of the table. */
export function featureRows(): FeatureRow[] {
  const page = readFileSync(new URL('../../docs/reference/verbs-features.md', import.meta.url), 'utf8');
  const [, lines = ''] = page.split('<!-- verbs features -->\n');
  const rows = lines.split('\n').slice(2);
  return rows.slice(0, rows.indexOf('')).map((line) => {
    const [feature = '', sessions = '', api = '', ...rest] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    const on = Object.fromEntries(columns.map((column, i) => [column, rest[i]!])) as Record<Column, string>;
    return { feature, sessions, api, on, why: rest[columns.length]! };
  });
}

/** Returns the rows that stand for a feature of `Device.whyNot`. */
export const asked: ReadonlyMap<string, Feature> = new Map<string, Feature>([
  ['SEND with immediate', 'sendWithImm'],
  ['SEND with invalidate', 'windows'],
  ['WRITE with immediate', 'writeWithImm'],
  ['fetch-and-add, compare-and-swap', 'atomics'],
  ['windows of type 2', 'windows'],
  ['LOCAL_INV', 'windows'],
  ['shared receive queues', 'sharedReceives'],
  ['limit event of a shared queue', 'srqLimit'],
  ['XRC', 'xrc'],
  ['UD, address handles, GRH', 'ud'],
  ['multicast', 'multicast'],
  ['UC', 'uc'],
  ['solicited events', 'solicited'],
  ['RESET, INIT, RTR, RTS one by one', 'steps'],
  ['SQD and SQE', 'drain'],
  ['ERR to RESET to INIT', 'reset'],
]);
