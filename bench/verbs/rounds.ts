/**
 * Measures on the machine that has the devices, which is the guest or a machine with a NIC. Every round runs
 * every peer once, one after the other, so that a temporary slowdown of the machine affects all of them.
 * bench/verbs/main.ts starts this program:
 *
 *   node dist/bench/verbs/rounds.js FILE TASK
 */
import { writeFileSync } from 'node:fs';
import { lines } from './lines.ts';
import type { Task } from './options.ts';
import type { Row } from './rows.ts';
import { type Scenario, scenarios } from './scenarios.ts';
import { closeTool } from './tool.ts';

const [file, task] = process.argv.slice(2) as [string, string];
const { measure, only, rounds, scale, devices } = JSON.parse(task) as Task;

const wanted = (measure === 'perf' ? lines : scenarios).filter(
  ({ name }) => only.length === 0 || only.some((each) => name.startsWith(each)),
);
const rows: Row[] = wanted.flatMap(({ name, unit, peers }) =>
  peers.map(({ name: peer, sameRun = false }) => ({
    scenario: name,
    peer,
    unit,
    sameRun,
    rounds: [],
    why: '',
  })),
);
for (let round = 1; round <= rounds; round++) {
  for (const scenario of wanted.flatMap((each) => Array(each.turns).fill(each) as Scenario[])) {
    const found: string[] = [];
    for (const peer of scenario.peers) {
      const row = rows.find((each) => each.scenario === scenario.name && each.peer === peer.name)!;
      try {
        const figure = await peer.measure(devices, scale);
        row.rounds.push(figure);
        found.push(`${peer.name} ${figure.toFixed(1)}`);
      } catch (error) {
        row.rounds.push(null);
        row.why = error instanceof Error ? error.message : String(error);
        found.push(`${peer.name} NOT RUN: ${row.why}`);
      }
    }
    process.stderr.write(`round ${round}/${rounds} ${scenario.name} ${scenario.unit}: ${found.join(', ')}\n`);
  }
}
closeTool();
writeFileSync(file, JSON.stringify(rows));
