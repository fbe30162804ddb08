/**
 * The benchmark's orchestrator: starts pairs of processes, asks them for measurements round by round, prints medians and ratios. It
 * sleeps while they measure. Run by scripts/bench.mjs.
 */
import { writeFileSync } from 'node:fs';
import { program } from 'commander';
import { against } from './against.ts';
import { judge } from './goals.ts';
import { conflictOf, parseOptions, select } from './options.ts';
import { fits, loadPeer, peerNames } from './peers.ts';
import { placementHere } from './placement.ts';
import { goalLines, machineText, roundsText, scenarioTables } from './report.ts';
import { writePart } from './results.ts';
import { groups, placeable, Rounds } from './rounds.ts';
import { medians, type Row } from './rows.ts';
import { type Scenario, scenarios } from './scenarios.ts';

/** All peers in turn, round by round. */
async function compared(
  wanted: readonly Scenario[],
  peers: readonly string[],
  rounds: number,
  run: Rounds,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const group of groups(wanted)) {
      for (const name of peers) {
        const fitting = group.filter((scenario) => fits(name, scenario));
        if (fitting.length === 0) continue;
        rows.push(...(await run.run(() => loadPeer(name), fitting, `round ${round}/${rounds} ${name}`)));
      }
    }
  }
  const names = scenarios.map((scenario) => scenario.name);
  return medians(rows).sort((a, b) => names.indexOf(a.scenario) - names.indexOf(b.scenario));
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv);
  const { against: ref, tree, json, markdown } = options;
  const conflict = conflictOf(options, peerNames);
  if (conflict !== undefined) program.error(conflict);
  const names = scenarios.map((scenario) => scenario.name);
  const chosen = select(options.only, names, peerNames);
  const here = placementHere();
  const asked = scenarios.filter((each) => chosen.scenarios.includes(each.name));
  const wanted = placeable(asked, here.placement);
  const rounds = options.quick ? 1 : options.rounds;
  const run = new Rounds(options.quick, here.placement);
  const parts: string[] = [];
  if (ref !== undefined && tree !== undefined) {
    const table = await against(ref, tree, wanted, rounds, run);
    parts.push(
      `# Against ${ref}\n\n${machineText()}, ${roundsText(rounds, 'alternating rounds')}. ${here.text}`,
      table,
    );
  } else {
    const results = await compared(wanted, chosen.peers, rounds, run);
    parts.push(
      `# Benchmark results\n\n${machineText()}, ${roundsText(rounds)}. ${here.text} Made by \`npm run bench\`.`,
      `## Goals\n\n${goalLines(judge(results))}`,
      `## Scenarios\n\n${scenarioTables(results).trimEnd()}`,
    );
    if (json !== undefined) writeFileSync(json, `${JSON.stringify(results, null, 2)}\n`);
  }
  const report = `${[...parts, ...run.remarks()].join('\n\n')}\n`;
  console.log(report);
  if (markdown !== undefined) writePart(markdown, 'main', report);
  run.finish();
}

await main();
