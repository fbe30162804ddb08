/** The readable results of real RDMA: a line for each goal, a table of medians. Markdown that also reads well in a terminal. */
import { cpus, release } from 'node:os';
import { figure, goalLines, table } from '../report.ts';
import { verbsHeading } from '../results.ts';
import { judge } from './goals.ts';
import { median, type Row } from './rows.ts';
import type { CacheFigures } from './session.ts';

/** The last peer's of the scenario is the one that all are compared with; a latency is better when it is lower. */
function cells(row: Row, rows: readonly Row[]): string[] {
  const ours = median(rows.find((each) => each.scenario === row.scenario));
  const own = median(row);
  const ratio = ours === undefined || own === undefined ? '-' : `${(ours / own).toFixed(2)} ×`;
  const spread =
    row.rounds.length === 0
      ? '-'
      : `${figure(Math.min(...row.rounds))} to ${figure(Math.max(...row.rounds))}`;
  return [row.scenario, row.peer, own === undefined ? 'not run' : figure(own), row.unit, spread, ratio];
}

export function reportOf(rows: readonly Row[], cache: CacheFigures, rounds: number, where: string): string {
  const machine = cpus();
  const day = new Date().toISOString().slice(0, 10);
  const host = `Linux ${release()}, ${machine.length} CPUs (${machine[0]?.model})`;
  const head = ['scenario', 'peer', 'median', 'unit', 'rounds', 'session / peer'];
  const parts = [
    verbsHeading,
    `${day}, ${where}; host: ${host}; ${rounds === 1 ? 'one round' : `medians of ${rounds} rounds`}. Made by \`npm run bench:verbs\`.`,
    goalLines(judge(rows, cache)),
    table([head, ...rows.map((row) => cells(row, rows))]),
    ...rows.filter((row) => row.why !== '').map((row) => `${row.scenario}, ${row.peer}: ${row.why}`),
  ];
  return `${parts.join('\n\n')}\n`;
}
