/** The demo's tables as text. */
import type { LoadReport } from './load.ts';
import type { TravelRow } from './transport.ts';

/**
 * Returns columns as wide as their widest cell. The first `left` columns are aligned left, and the other
 * columns are aligned right.
 */
export function textTable(lines: readonly (readonly string[])[], left: number): string {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const pad = (text: string, column: number): string =>
    column < left ? text.padEnd(widths[column]!) : text.padStart(widths[column]!);
  const [head, ...body] = lines.map((line) => line.map(pad).join('  '));
  return [head, widths.map((width) => '-'.repeat(width)).join('  '), ...body].join('\n');
}

const units = ['B', 'KiB', 'MiB', 'GiB'] as const;

/** Formats 1536 as `1.50 KiB`. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : value.toPrecision(3)} ${units[unit]}`;
}

/** Formats microseconds with a unit that keeps the text short: 3.1 us, 12.4 ms. */
export function timeText(microseconds: number): string {
  if (microseconds < 1000) return `${microseconds.toPrecision(3)} us`;
  return microseconds < 1e6
    ? `${(microseconds / 1e3).toPrecision(3)} ms`
    : `${(microseconds / 1e6).toPrecision(3)} s`;
}

const count = (value: number): string => value.toLocaleString('en-GB');

export function callTable(report: LoadReport): string {
  const head = ['operation', 'value', 'calls', 'errors', 'bytes', 'p50', 'p99', 'p99.9'];
  const lines = report.rows.map((row) => [
    row.operation,
    row.size,
    count(row.calls),
    count(row.errors),
    bytesText(row.bytes),
    timeText(row.p50Us),
    timeText(row.p99Us),
    timeText(row.p999Us),
  ]);
  return textTable([head, ...lines], 2);
}

export function travelTable(rows: readonly TravelRow[]): string {
  const head = ['how payloads travelled', 'client', 'server'];
  return textTable([head, ...rows.map((row) => [row.way, count(row.client), count(row.server)])], 1);
}

/** Returns the last lines: the duration and the errors. */
export function summary(report: LoadReport): string {
  const calls = report.rows.reduce((sum, row) => sum + row.calls, 0);
  const wrong = report.rows.reduce((sum, row) => sum + row.errors, 0);
  const seconds = (report.elapsedMs / 1000).toFixed(1);
  const verdict = report.errors.length === 0 ? 'every value was the right one' : `${wrong} calls went wrong`;
  return [
    `${count(calls)} calls in ${seconds} s: ${verdict}`,
    ...report.errors.map((error) => `  ${error}`),
  ].join('\n');
}
