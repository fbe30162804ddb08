/**
 * The benchmark's orchestrator: starts pairs of processes, asks them for measurements round by round, prints medians and ratios. It
 * sleeps while they measure. Run by scripts/bench.mjs.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { judge } from './goals.ts';
import type { Window } from './measure.ts';
import { parseOptions, select } from './options.ts';
import { Pair } from './pair.ts';
import type { Peer } from './peer.ts';
import { fits, loadPeer, peerNames, pollingPeers } from './peers.ts';
import { goalLines, scenarioTables } from './report.ts';
import { writePart } from './results.ts';
import { medians, type Row } from './rows.ts';
import { placementOf, type Scenario, scenarios } from './scenarios.ts';

const fullWindow: Window = { warmupMs: 400, measureMs: 1000 };
const quickWindow: Window = { warmupMs: 150, measureMs: 200 };
/** The first load of a process meets interpreted code: it is given this long before it counts. */
const compileMs = 1000;
const quickCompileMs = 250;
/** More than this used by the rest of the machine, in percent of one CPU, disturbs a measurement. */
const othersMaxPercent = 8;

function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Scenarios that can share a pair of processes: same polling, same placement, same network. */
function groups(chosen: readonly Scenario[]): Scenario[][] {
  const keyed = new Map<string, Scenario[]>();
  for (const scenario of chosen) {
    const key = `${scenario.polling} ${scenario.pinned} ${scenario.network}`;
    keyed.set(key, [...(keyed.get(key) ?? []), scenario]);
  }
  return [...keyed.values()];
}

async function runGroup(
  peer: Peer,
  group: readonly Scenario[],
  quick: boolean,
  label: string,
): Promise<Row[]> {
  const rows: Row[] = [];
  const window = quick ? quickWindow : fullWindow;
  const pair = peer.measure === undefined ? await Pair.start(peer, group[0]!) : undefined;
  try {
    for (const [index, scenario] of group.entries()) {
      const warmupMs = index === 0 ? (quick ? quickCompileMs : compileMs) : window.warmupMs;
      const asked = { ...window, warmupMs };
      const { othersPercent, ...measurement } = await (pair?.run(scenario, asked) ??
        peer.measure!(scenario, asked));
      const disturbed = othersPercent > othersMaxPercent;
      measured++;
      if (disturbed) disturbances++;
      rows.push({
        scenario: scenario.name,
        peer: peer.name,
        fabric: scenario.network === 'tcp' ? 'tcp' : peer.fabric,
        payloadBytes: scenario.payloadBytes,
        inFlight: scenario.inFlight,
        besideBytes: scenario.besideBytes,
        ...measurement,
        placement: placementOf(scenario, pollingPeers.includes(peer.name)),
      });
      const calls = Math.round(measurement.callsPerSecond).toLocaleString('en-GB');
      note(
        `${label} ${scenario.name}: ${calls} calls/s${disturbed ? `, others used ${othersPercent.toFixed(0)} % of a CPU` : ''}`,
      );
    }
  } catch (error) {
    note(`${label} NOT RUN: ${error instanceof Error ? error.message : error}`);
    failures++;
  } finally {
    await pair?.stop();
  }
  return rows;
}

function reportOf(results: readonly Row[], rounds: number, quick: boolean): string {
  const machine = cpus();
  const day = new Date().toISOString().slice(0, 10);
  const where = `Node ${process.versions.node}, Linux ${release()}, ${machine.length} CPUs (${machine[0]?.model})`;
  const parts = [
    `# Benchmark results\n\n${day}, ${where}, ${rounds === 1 ? 'one round' : `medians of ${rounds} rounds`}. Made by \`npm run bench\`.`,
    `## Goals\n\n${goalLines(judge(results))}`,
    `## Scenarios\n\n${scenarioTables(results).trimEnd()}`,
  ];
  if (quick) parts.push('A quick run: too short to compile and settle, so its ratios and goals say little.');
  if (disturbances > 0) {
    parts.push(
      `Other processes used more than ${othersMaxPercent} % of a CPU during ${disturbances} of ${measured} measurements.`,
    );
  }
  return `${parts.join('\n\n')}\n`;
}

let failures = 0;
let measured = 0;
let disturbances = 0;

async function main(): Promise<void> {
  const options = parseOptions(process.argv);
  const chosen = select(
    options.only,
    scenarios.map((scenario) => scenario.name),
    peerNames,
  );
  const canPin = spawnSync('taskset', ['-c', '0', 'true']).status === 0;
  if (!canPin) note('taskset is not there: the scenario on one CPU is left out (Debian package util-linux)');
  const wanted = scenarios.filter((each) => chosen.scenarios.includes(each.name) && (canPin || !each.pinned));
  const rounds = options.quick ? 1 : options.rounds;
  const rows: Row[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const group of groups(wanted)) {
      for (const name of chosen.peers) {
        const fitting = group.filter((scenario) => fits(name, scenario));
        if (fitting.length === 0) continue;
        const label = `round ${round}/${rounds} ${name}`;
        try {
          rows.push(...(await runGroup(await loadPeer(name), fitting, options.quick, label)));
        } catch (error) {
          note(`${label} NOT RUN: ${error instanceof Error ? error.message : error}`);
          failures++;
        }
      }
    }
  }
  const results = medians(rows).sort(
    (a, b) =>
      scenarios.findIndex((each) => each.name === a.scenario) -
      scenarios.findIndex((each) => each.name === b.scenario),
  );
  const report = reportOf(results, rounds, options.quick);
  console.log(report);
  if (options.markdown !== undefined) writePart(options.markdown, 'main', report);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, null, 2)}\n`);
  if (failures > 0) note(`${failures} group(s) of scenarios did not run; their reasons are above`);
  process.exitCode = failures > 0 ? 1 : 0;
}

await main();
