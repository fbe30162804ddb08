/**
 * The readable results in full, with a table for each scenario and ratios to grpc-js and to the limit. They
 * are written as Markdown that is also readable in a terminal.
 */
import { cpus, release } from 'node:os';
import type { Verdict } from './goals.ts';
import { type Node, nodeText, ownNode } from './nodes.ts';
import type { Row } from './rows.ts';

const columns = [
  'peer',
  'calls/s',
  'GB/s',
  'p50 us',
  'p99 us',
  'p99.9 us',
  'CPU %',
  '× grpc-js',
  'of the limit',
] as const;

/** Marks the name or the figure of a peer whose every round was disturbed. */
export const disturbedMark = '(!)';

export function disturbedText(disturbances: number, measured: number, mostPercent: number): string {
  return (
    `Other processes used more than ${mostPercent} % of a CPU during ${disturbances} of ${measured} measurements. The medians leave these measurements out; ` +
    `${disturbedMark} marks a peer for which no undisturbed round is left.`
  );
}

/** Returns the day, the Nodes with their V8, and the machine. */
export function machineText(nodes: readonly Node[] = [ownNode]): string {
  const machine = cpus();
  const day = new Date().toISOString().slice(0, 10);
  return `${day}, ${nodes.map(nodeText).join(' and ')}, Linux ${release()}, ${machine.length} CPUs (${machine[0]?.model})`;
}

/** Returns a text about how the figures were measured. `kind` names the rounds, in the plural. */
export function roundsText(rounds: number, kind = 'rounds'): string {
  return rounds === 1 ? 'one round' : `medians of ${rounds} ${kind}`;
}

/** Formats a number with three significant digits and separated thousands: 4,510,000 and 1.16. */
export function figure(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return '-';
  const rounded = Number(value.toPrecision(3));
  return rounded.toLocaleString('en-GB', { maximumSignificantDigits: 3 });
}

function ratio(row: Row, base: Row | undefined): number {
  return base === undefined || base.callsPerSecond === 0 ? 0 : row.callsPerSecond / base.callsPerSecond;
}

function cells(row: Row, rows: readonly Row[]): string[] {
  const limit = rows.find((each) => each.peer === 'limit');
  const grpc = rows.find((each) => each.peer === 'grpc-js');
  const share = ratio(row, limit);
  return [
    row.disturbed ? `${row.peer} ${disturbedMark}` : row.peer,
    figure(row.callsPerSecond),
    Math.max(row.payloadBytes, row.besideBytes) >= 4096 ? figure(row.bytesPerSecond / 1e9) : '-',
    figure(row.p50Us),
    figure(row.p99Us),
    figure(row.p999Us),
    row.cpuPercent < 10 ? row.cpuPercent.toFixed(1) : row.cpuPercent.toFixed(0),
    figure(ratio(row, grpc)),
    share === 0 ? '-' : `${Math.round(100 * share)} %`,
  ];
}

/**
 * Returns a Markdown table with padded columns. The first column is aligned left, and the other columns are
 * aligned right.
 */
export function table(lines: readonly (readonly string[])[]): string {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const pad = (text: string, column: number): string =>
    column === 0 ? text.padEnd(widths[column]!) : text.padStart(widths[column]!);
  const [head, ...body] = lines.map((line) => `| ${line.map(pad).join(' | ')} |`);
  const rule = `| ${widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [head, rule, ...body].join('\n');
}

/** Peers of one scenario may wait in different ways, so each way is named with its peers. */
function placements(rows: readonly Row[]): string {
  const ways = new Map<string, string[]>();
  for (const row of rows) ways.set(row.placement, [...(ways.get(row.placement) ?? []), row.peer]);
  return [...ways].map(([placement, peers]) => `${placement} (${peers.join(', ')})`).join('; ');
}

export function scenarioTables(rows: readonly Row[]): string {
  const names = [...new Set(rows.map((row) => row.scenario))];
  return names
    .map((name) => {
      const group = rows.filter((row) => row.scenario === name);
      return `### ${name}\n\nPlacement: ${placements(group)}.\n\n${table([columns, ...group.map((row) => cells(row, group))])}\n`;
    })
    .join('\n');
}

export const verdictWords = { true: 'reached', false: 'missed', undefined: 'not run' } as const;

export function goalLines(verdicts: readonly Verdict[]): string {
  return table([
    ['goal', 'found', ''],
    ...verdicts.map(({ goal, found, reached }) => [goal, found, verdictWords[`${reached}`]]),
  ]);
}
