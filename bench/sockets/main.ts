/**
 * The benchmark of sockets and of the tunnel. It measures each scenario with each peer, round by round, and
 * prints medians and ratios, and whether each goal is reached. It sleeps while the other processes measure.
 * scripts/bench-sockets.mjs starts this program.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { program } from 'commander';
import { answer, end } from '../children.ts';
import type { Window } from '../measure.ts';
import { roundsOf } from '../options.ts';
import { commandOn, placementHere } from '../placement.ts';
import { machineText, roundsText } from '../report.ts';
import type { FromEnd } from './end.ts';
import { type SocketRow, socketReport } from './rows.ts';
import { type Library, librariesOf, type SocketScenario, socketScenarios } from './scenarios.ts';
import { measureTunnel, type TunnelScenario, tunnelScenarios, type Way, ways } from './tunnel.ts';

const endFile = fileURLToPath(new URL('./end.js', import.meta.url));
const here = placementHere();
let measured = 0;

program
  .name('npm run bench:sockets --')
  .description('Measures sockets beside node:net, and programs through the tunnel beside direct ones.')
  .option('--markdown <file>', 'write the results to this file (bench/sockets/RESULTS.md)')
  .option('--only <name...>', 'only scenarios whose name begins with one of these, for example: ping', [''])
  .option('--rounds <n>', 'interleaved rounds', roundsOf, 5)
  .option('--quick', 'one short round: a check that everything runs, not a measurement', false)
  .parse();
const options = program.opts<{ markdown?: string; only: string[]; rounds: number; quick: boolean }>();
const window: Window = options.quick
  ? { warmupMs: 200, measureMs: 200 }
  : { warmupMs: 1000, measureMs: 1000 };

function start(scenario: SocketScenario, role: 'server' | 'client', args: readonly string[]): ChildProcess {
  const flags = (process.env[`RDMA_RPC_BENCH_${role.toUpperCase()}_FLAGS`] ?? '').split(' ').filter(Boolean);
  const command = [process.execPath, ...flags, endFile, role, scenario.name, ...args];
  const [file = '', ...rest] = commandOn(
    here.placement?.[scenario.polling === 'event' ? 'one' : role],
    command,
  );
  return spawn(file, rest, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
}

async function said(child: ChildProcess): Promise<FromEnd> {
  const message = await answer<FromEnd>(child);
  if (message.type === 'failed') throw new Error(message.reason);
  return message;
}

async function runPair(scenario: SocketScenario, library: Library, round: number): Promise<SocketRow> {
  const path = join(tmpdir(), `rdma-rpc-bench-sockets-${process.pid}-${++measured}.sock`);
  const server = start(scenario, 'server', [library, path]);
  try {
    const ready = await said(server);
    if (ready.type !== 'ready') throw new Error(`unexpected ${ready.type}`);
    const args = [library, ready.address, JSON.stringify(window), String(server.pid)];
    const client = start(scenario, 'client', args);
    try {
      const result = await said(client);
      if (result.type !== 'measured') throw new Error(`unexpected ${result.type}`);
      const bytes = scenario.kind === 'write' ? scenario.bytes : 0;
      return { scenario: scenario.name, peer: library, round, bytes, ...result.measurement };
    } finally {
      await end(client);
    }
  } finally {
    await end(server);
    rmSync(path, { force: true });
  }
}

async function runTunnel(scenario: TunnelScenario, way: Way, round: number): Promise<SocketRow> {
  const measurement = await measureTunnel(scenario, way, (2 * window.measureMs) / 1000);
  const bytes = scenario.program === 'iperf3' ? 1 : 0;
  return { scenario: scenario.name, peer: way, round, bytes, ...measurement };
}

/** A scenario with one of its peers. */
interface Job {
  readonly scenario: string;
  readonly peer: string;
  run(round: number): Promise<SocketRow>;
}

const jobs: readonly Job[] = [
  ...socketScenarios.flatMap((scenario) =>
    librariesOf(scenario).map((peer) => ({
      scenario: scenario.name,
      peer,
      run: (round: number) => runPair(scenario, peer, round),
    })),
  ),
  ...tunnelScenarios.flatMap((scenario) =>
    ways.map((peer) => ({
      scenario: scenario.name,
      peer,
      run: (round: number) => runTunnel(scenario, peer, round),
    })),
  ),
].filter(({ scenario }) => options.only.some((prefix) => scenario.startsWith(prefix)));

const rounds = options.quick ? 1 : options.rounds;
const rows: SocketRow[] = [];
for (let round = 1; round <= rounds; ++round) {
  for (const { scenario, peer, run } of jobs) {
    try {
      const row = await run(round);
      rows.push(row);
      console.error(`round ${round} ${scenario} ${peer}: ${Math.round(row.perSecond)} per second`);
    } catch (error) {
      console.error(`round ${round} ${scenario} ${peer} NOT RUN: ${String(error)}`);
      process.exitCode = 1;
    }
  }
}
const how = `Made by \`npm run bench:sockets\` on ${machineText()}. The figures are ${roundsText(rounds)}. ${here.text}`;
const explanation = [
  '`rdma-rpc` is `rdma-rpc/socket`, over shared memory, or over TCP in the rows that begin with `tcp`.',
  '`rdma-rpc stays` is the same with the option `writesStay`, which saves a copy on fabrics where that is',
  'cheaper; over shared memory it changes nothing for these writes, because copies are cheaper up to 4 MiB.',
  'The rows `two haproxys` show what two relays in C reach, without sessions, when four programs share the',
  'CPUs of two. Where they miss a goal, the tunnel cannot be expected to reach it here (bench/HISTORY.md).',
  'The last column is the median, over all rounds, of the ratio to the rate in the first row of the scenario.',
].join(' ');
const report = `# Sockets and the tunnel\n\n${how}\n\n${explanation}\n\n${socketReport(rows)}\n`;
console.log(report);
if (options.markdown !== undefined) writeFileSync(options.markdown, report);
