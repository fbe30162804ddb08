/**
 * The benchmark's orchestrator: starts pairs of processes, asks them for measurements round by round, prints medians and ratios. It
 * sleeps while they measure. Run by scripts/bench.mjs.
 */
import { writeFileSync } from 'node:fs';
import { against } from './against.ts';
import { judge } from './goals.ts';
import { parseOptions, select } from './options.ts';
import { fits, loadPeer, peerNames } from './peers.ts';
import { disturbedText, goalLines, machineText, scenarioTables } from './report.ts';
import { writePart } from './results.ts';
import { groups, note, othersMaxPercent, placeable, Rounds } from './rounds.ts';
import { medians, type Row } from './rows.ts';
import { scenarios } from './scenarios.ts';

function reportOf(results: readonly Row[], rounds: number, quick: boolean, run: Rounds): string {
  const parts = [
    `# Benchmark results\n\n${machineText()}, ${rounds === 1 ? 'one round' : `medians of ${rounds} rounds`}. Made by \`npm run bench\`.`,
    `## Goals\n\n${goalLines(judge(results))}`,
    `## Scenarios\n\n${scenarioTables(results).trimEnd()}`,
  ];
  if (quick) parts.push('A quick run: too short to compile and settle, so its ratios and goals say little.');
  if (run.disturbances > 0) parts.push(disturbedText(run.disturbances, run.measured, othersMaxPercent));
  return `${parts.join('\n\n')}\n`;
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv);
  const names = scenarios.map((scenario) => scenario.name);
  const chosen = select(options.only, names, peerNames);
  const wanted = placeable(scenarios.filter((each) => chosen.scenarios.includes(each.name)));
  const rounds = options.quick ? 1 : options.rounds;
  const run = new Rounds(options.quick);
  if (options.against !== undefined) {
    console.log(await against(options.against, options.tree ?? '', wanted, rounds, run));
    process.exitCode = run.failures > 0 ? 1 : 0;
    return;
  }
  const rows: Row[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const group of groups(wanted)) {
      for (const name of chosen.peers) {
        const fitting = group.filter((scenario) => fits(name, scenario));
        if (fitting.length === 0) continue;
        rows.push(...(await run.run(() => loadPeer(name), fitting, `round ${round}/${rounds} ${name}`)));
      }
    }
  }
  const results = medians(rows).sort((a, b) => names.indexOf(a.scenario) - names.indexOf(b.scenario));
  const report = reportOf(results, rounds, options.quick, run);
  console.log(report);
  if (options.markdown !== undefined) writePart(options.markdown, 'main', report);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, null, 2)}\n`);
  if (run.failures > 0) note(`${run.failures} group(s) of scenarios did not run; their reasons are above`);
  process.exitCode = run.failures > 0 ? 1 : 0;
}

await main();
