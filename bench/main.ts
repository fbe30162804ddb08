/**
 * The benchmark's orchestrator. It starts pairs of processes, requests measurements round by round, and
 * prints medians and ratios. It sleeps while the processes measure. scripts/bench.mjs starts this program.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { program } from 'commander';
import { against } from './against.ts';
import { pageCost, pageCostText } from './fresh-page.ts';
import { judge } from './goals.ts';
import { type Node, nodesOf } from './nodes.ts';
import { conflictOf, parseOptions, select } from './options.ts';
import { goalTable, pageText, quickStartTable, readmeText } from './page.ts';
import { fits, loadPeer, peerNames } from './peers.ts';
import { placementHere } from './placement.ts';
import { machineText, roundsText, scenarioTables } from './report.ts';
import { groups, placeable, Rounds } from './rounds.ts';
import { medians, type Row } from './rows.ts';
import { type Scenario, scenarios } from './scenarios.ts';

/** Runs all peers in turn on each Node, round by round. */
async function compared(
  wanted: readonly Scenario[],
  peers: readonly string[],
  nodes: readonly Node[],
  rounds: number,
  run: Rounds,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const group of groups(wanted)) {
      for (const name of peers) {
        const fitting = group.filter((scenario) => fits(name, scenario));
        if (fitting.length === 0) continue;
        for (const node of nodes) {
          const on = nodes.length > 1 ? `, Node ${node.version}` : '';
          const label = `round ${round}/${rounds} ${name}${on}`;
          rows.push(...(await run.run(() => loadPeer(name), fitting, label, node)));
        }
      }
    }
  }
  const names = scenarios.map((scenario) => scenario.name);
  return medians(rows).sort((a, b) => names.indexOf(a.scenario) - names.indexOf(b.scenario));
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv);
  const { against: ref, tree, json, markdown, readme } = options;
  const conflict = conflictOf(options, peerNames);
  if (conflict !== undefined) program.error(conflict);
  const nodes = nodesOf(options.node);
  const names = scenarios.map((scenario) => scenario.name);
  const chosen = select(options.only, names, peerNames);
  const here = placementHere();
  const asked = scenarios.filter((each) => chosen.scenarios.includes(each.name));
  const wanted = placeable(asked, here.placement);
  const rounds = options.quick ? 1 : options.rounds;
  const run = new Rounds(options.quick, here.placement);
  const head = (kind?: string): string =>
    `${machineText(nodes)}. The figures are ${roundsText(rounds, kind)}. ${here.text} ${pageCostText(pageCost())}`;
  if (ref !== undefined && tree !== undefined) {
    const about = head('alternating rounds');
    const table = await against(ref, tree, wanted, rounds, run, nodes[0]);
    console.log(`${[`# Against ${ref}`, about, table, ...run.remarks()].join('\n\n')}\n`);
    run.finish();
    return;
  }
  const about = head();
  const rows = await compared(wanted, chosen.peers, nodes, rounds, run);
  const rowsOf = ({ version }: Node): Row[] => rows.filter((row) => row.node === version);
  const goals = nodes.map((node) => ({ version: node.version, verdicts: judge(rowsOf(node)) }));
  const page = { head: `${about} Made by \`npm run bench\`.`, rows, goals, remarks: run.remarks() };
  const full = nodes.map((node) => `## Scenarios, Node ${node.version}\n\n${scenarioTables(rowsOf(node))}`);
  console.log(
    ['# Benchmark results', page.head, quickStartTable(rows), goalTable(goals), ...full, ...page.remarks]
      .map((part) => part.trimEnd())
      .filter((part) => part !== '')
      .join('\n\n'),
  );
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(rows, null, 2)}\n`);
  if (markdown !== undefined) writeFileSync(markdown, pageText(page));
  if (readme !== undefined) writeFileSync(readme, readmeText(readFileSync(readme, 'utf8'), page));
  run.finish();
}

await main();
