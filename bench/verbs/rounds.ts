/**
 * Measures, where the devices are: in the guest, or on a machine with a NIC. Every round runs every peer once, ours and theirs in turn,
 * so that what slows the machine for a while slows all. Started by bench/verbs/main.ts:
 *
 *   node dist/bench/verbs/rounds.js FILE ROUNDS SCALE SERVER_DEVICE CLIENT_DEVICE [GID_INDEX]
 */
import { writeFileSync } from 'node:fs';
import type { Row } from './rows.ts';
import { type Scenario, scenarios } from './scenarios.ts';

const [file, rounds, scale, server, client, gidIndex] = process.argv.slice(2) as [string, ...string[]];
const devices = {
  server: server!,
  client: client!,
  gidIndex: gidIndex === undefined ? undefined : Number(gidIndex),
};

const rows: Row[] = scenarios.flatMap(({ name, unit, peers }) =>
  peers.map(({ name: peer, sameRun = false }) => ({
    scenario: name,
    peer,
    unit,
    sameRun,
    rounds: [],
    why: '',
  })),
);
for (let round = 1; round <= Number(rounds); round++) {
  for (const scenario of scenarios.flatMap((each) => Array(each.turns).fill(each) as Scenario[])) {
    const found: string[] = [];
    for (const peer of scenario.peers) {
      const row = rows.find((each) => each.scenario === scenario.name && each.peer === peer.name)!;
      try {
        const figure = await peer.measure(devices, Number(scale));
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
writeFileSync(file, JSON.stringify(rows));
