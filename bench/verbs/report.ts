/**
 * The readable results of real RDMA: a line for each goal, followed by a table of medians. They are written
 * as Markdown that is also readable in a terminal.
 */
import { cpus, release } from 'node:os';
import { figure, goalLines, roundsText, table } from '../report.ts';
import { judge, linesWithin } from './goals.ts';
import { figuresOf, median, type Row, ratio } from './rows.ts';
import type { CacheFigures } from './session.ts';

function cells(row: Row, rows: readonly Row[]): string[] {
  const own = median(row);
  const ours = ratio(
    rows.find((each) => each.scenario === row.scenario),
    row,
  );
  const figures = figuresOf(row);
  const spread =
    figures.length === 0 ? '-' : `${figure(Math.min(...figures))} to ${figure(Math.max(...figures))}`;
  return [
    row.scenario,
    row.peer,
    own === undefined ? 'not run' : figure(own),
    row.unit,
    spread,
    ours === undefined || row.sameRun ? '-' : `${ours.toFixed(2)} ×`,
  ];
}

function circumstances(rounds: number, where: string, command: string): string {
  const machine = cpus();
  const day = new Date().toISOString().slice(0, 10);
  const host = `Linux ${release()}, ${machine.length} CPUs (${machine[0]?.model})`;
  return `${day}, ${where}. The host has ${host}. The figures are ${roundsText(rounds, 'rounds, and of the ratios within each round')}. Made by \`npm run ${command}\`.`;
}

/** Returns `rdma-rpc perf` beside perftest, with one line of both for each test and size. */
export function perfReportOf(rows: readonly Row[], rounds: number, where: string): string {
  const head = [
    'line',
    'unit',
    'perftest',
    'perf --fabric bare',
    '/ perftest',
    '',
    'perf --fabric verbs',
    '/ perftest',
  ];
  const lines = linesWithin(rows).map(({ name, unit, theirs, bare, fabric, within }) => [
    name,
    unit,
    figureOf(median(theirs)),
    figureOf(median(bare)),
    timesOf(ratio(bare, theirs)),
    within === undefined ? 'not run' : within ? 'within 5 %' : 'missed',
    figureOf(median(fabric)),
    timesOf(ratio(fabric, theirs)),
  ]);
  const parts = [
    '# `rdma-rpc perf` beside perftest',
    circumstances(rounds, where, 'bench:verbs -- --perf'),
    table([head, ...lines]),
    ...rows.filter((row) => row.why !== '').map((row) => `${row.scenario}, ${row.peer}: ${row.why}`),
  ];
  return `${parts.join('\n\n')}\n`;
}

const figureOf = (value: number | undefined): string => (value === undefined ? '-' : figure(value));
const timesOf = (value: number | undefined): string => (value === undefined ? '-' : `${value.toFixed(2)} ×`);

export function reportOf(rows: readonly Row[], cache: CacheFigures, rounds: number, where: string): string {
  const head = ['scenario', 'peer', 'median', 'unit', 'rounds', 'session / peer'];
  const parts = [
    '# Real RDMA',
    circumstances(rounds, where, 'bench:verbs'),
    goalLines(judge(rows, cache)),
    table([head, ...rows.map((row) => cells(row, rows))]),
    ...rows.filter((row) => row.why !== '').map((row) => `${row.scenario}, ${row.peer}: ${row.why}`),
  ];
  return `${parts.join('\n\n')}\n`;
}
