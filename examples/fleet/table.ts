/**
 * The output of the fleet: in a terminal a table that is redrawn each second, and elsewhere a line each
 * second.
 */
import type { SeenServer } from './fleet.ts';
import type { Seen } from './load.ts';

/** The results that clients saw within a second, and the events of the servers. */
export interface Second extends Seen {
  readonly events: readonly string[];
}

export interface Row {
  readonly name: string;
  readonly address: string;
}

/** Errors by code, '0' for none. */
export const errorsOf = ({ errors }: Seen): string =>
  [...errors].map(([code, count]) => `${code} ${count}`).join(' ') || '0';

/** Returns the lines as columns. The first two columns are texts, and the other columns are numbers. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  return rows.map((row) =>
    row.map((cell, i) => (i < 3 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  '),
  );
}

/**
 * Returns the table after these seconds. `rows` are the running servers, and `seen` is the gateway's view of
 * them.
 */
export function tableOf(
  rows: readonly Row[],
  seen: readonly SeenServer[],
  seconds: readonly Second[],
): readonly string[] {
  const last = seconds.at(-1)!;
  const states = new Map(
    seen.map(({ address, state, stale }) => [address, stale ? `${state}, stale` : state]),
  );
  const servers = rows.map(({ name, address }) => {
    const total = seconds.reduce((sum, { answers }) => sum + (answers.get(name) ?? 0), 0);
    const state = states.get(address) ?? 'not listed';
    return [name, address, state, String(last.answers.get(name) ?? 0), String(total)];
  });
  const calls = [...last.answers.values()].reduce((sum, count) => sum + count, 0);
  const failed = seconds.reduce(
    (sum, { errors }) => sum + [...errors.values()].reduce((all, n) => all + n, 0),
    0,
  );
  const events = seconds
    .flatMap((second, i) => second.events.map((event) => `${i + 1} s  ${event}`))
    .slice(-8);
  return [
    `second ${seconds.length}: ${calls} calls/s, p50 ${last.p50Ms.toFixed(1)} ms, p99 ${last.p99Ms.toFixed(1)} ms, ` +
      `errors ${errorsOf(last)}, failed in all ${failed}`,
    '',
    ...aligned([['server', 'address', 'gateway sees', 'calls/s', 'calls'], ...servers]),
    '',
    ...events,
  ];
}

/** Returns the line of a second, for logs. */
export function lineOf(names: readonly string[], seconds: readonly Second[]): string {
  const last = seconds.at(-1)!;
  const counts = names.map((name) => last.answers.get(name) ?? 0);
  return [seconds.length, ...counts, last.p99Ms.toFixed(1), errorsOf(last), last.events.join(', ')].join(
    '\t',
  );
}
