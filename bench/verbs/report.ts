/** The readable results of real RDMA: a line for each goal, a table of medians. Markdown that also reads well in a terminal. */
import { cpus, release } from 'node:os';
import { figure, goalLines, roundsText, table } from '../report.ts';
import { verbsHeading } from '../results.ts';
import { judge } from './goals.ts';
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

export function reportOf(rows: readonly Row[], cache: CacheFigures, rounds: number, where: string): string {
  const machine = cpus();
  const day = new Date().toISOString().slice(0, 10);
  const host = `Linux ${release()}, ${machine.length} CPUs (${machine[0]?.model})`;
  const head = ['scenario', 'peer', 'median', 'unit', 'rounds', 'session / peer'];
  const parts = [
    verbsHeading,
    `${day}, ${where}; host: ${host}; ${roundsText(rounds, 'rounds, and of the ratios within each')}. Made by \`npm run bench:verbs\`.`,
    goalLines(judge(rows, cache)),
    table([head, ...rows.map((row) => cells(row, rows))]),
    ...rows.filter((row) => row.why !== '').map((row) => `${row.scenario}, ${row.peer}: ${row.why}`),
  ];
  return `${parts.join('\n\n')}\n`;
}
