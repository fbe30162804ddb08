/**
 * Compares this build with an older one. The same benchmark runs with the packages of both builds, in
 * alternating rounds, so that a temporary slowdown of the machine affects both. Each printed ratio is the
 * median of the ratios of the rounds. main.ts uses it for `--against REF`; scripts/bench-against.mjs builds
 * the older package.
 */
import { join } from 'node:path';
import type { Node } from './nodes.ts';
import { ours } from './ours.ts';
import { quickStart } from './plain.ts';
import { figure, table } from './report.ts';
import { groups, type Rounds } from './rounds.ts';
import { calm, median, type Row } from './rows.ts';
import type { Scenario } from './scenarios.ts';

/** The same scenario on both builds, one directly after the other. */
export interface Round {
  readonly before: Row;
  readonly after: Row;
  /** Whether other programs have disturbed one of the two measurements. */
  readonly disturbed: boolean;
}

/**
 * Returns the calls for each second of CPU time of both processes. This figure is less affected by the
 * machine's other load than calls/s.
 */
function perCpuSecond({ callsPerSecond, cpuPercent }: Row): number {
  return (100 * callsPerSecond) / cpuPercent;
}

const columns = ['scenario', 'calls/s', 'before', 'ratio', 'from', 'to', 'p50 ratio', 'per CPU', ''] as const;

function line(scenario: string, rounds: readonly Round[]): string[] {
  const counted = calm(rounds);
  const ratios = (of: (row: Row) => number): number[] =>
    counted.map(({ before, after }) => of(after) / of(before));
  const calls = ratios((row) => row.callsPerSecond);
  const fixed = (value: number): string => (Number.isFinite(value) ? value.toFixed(2) : '-');
  return [
    scenario,
    figure(median(counted.map(({ after }) => after.callsPerSecond))),
    figure(median(counted.map(({ before }) => before.callsPerSecond))),
    fixed(median(calls)),
    fixed(Math.min(...calls)),
    fixed(Math.max(...calls)),
    fixed(median(ratios((row) => row.p50Us))),
    fixed(median(ratios(perCpuSecond))),
    counted.every(({ disturbed }) => disturbed)
      ? 'disturbed'
      : `${counted.length} of ${rounds.length} rounds`,
  ];
}

/**
 * Returns one line for each scenario that both builds have run. Ratios above 1 mean faster, except in `p50
 * ratio`.
 */
export function comparison(rounds: ReadonlyMap<string, readonly Round[]>): string {
  return table([columns, ...[...rounds].map(([scenario, each]) => line(scenario, each))]);
}

/**
 * Measures both builds, and returns the table. `tree` is the folder of `ref`'s package, with this build's
 * benchmark in it.
 */
export async function against(
  ref: string,
  tree: string,
  wanted: readonly Scenario[],
  rounds: number,
  run: Rounds,
  node: Node,
): Promise<string> {
  const endFile = join(tree, 'dist', 'bench', 'end.js');
  const found = new Map<string, Round[]>();
  const loads = wanted.filter(({ kind }) => kind === 'echo' || kind === 'put');
  for (let round = 1; round <= rounds; round++) {
    for (const group of groups(loads)) {
      const peer = group[0]!.plain ? quickStart : ours;
      const before = (): Promise<Row[]> =>
        run.run(async () => ({ ...peer, endFile }), group, `round ${round}/${rounds} ${ref}`, node);
      const after = (): Promise<Row[]> =>
        run.run(async () => peer, group, `round ${round}/${rounds} now`, node);
      // The order alternates, because the second of two builds may find the machine warmer, or slower.
      const first = await (round % 2 === 1 ? before() : after());
      const second = await (round % 2 === 1 ? after() : before());
      const [old, now] = round % 2 === 1 ? [first, second] : [second, first];
      for (const row of now) {
        const other = old.find(({ scenario }) => scenario === row.scenario);
        if (other === undefined) continue;
        const pair = { before: other, after: row, disturbed: other.disturbed || row.disturbed };
        found.set(row.scenario, [...(found.get(row.scenario) ?? []), pair]);
      }
    }
  }
  return comparison(found);
}
