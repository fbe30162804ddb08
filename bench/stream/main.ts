/**
 * The benchmark of streams. It starts pairs of processes, requests measurements round by round, and prints
 * medians, ratios and whether each goal is reached. It sleeps while the processes measure.
 * scripts/bench-stream.mjs starts this program.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { program } from 'commander';
import type { Window } from '../measure.ts';
import { roundsOf } from '../options.ts';
import { commandOn, placementHere } from '../placement.ts';
import { roundsText } from '../report.ts';
import type { FromEnd, ToEnd } from './end.ts';
import { type StreamRow, streamReport } from './rows.ts';
import { type StreamScenario, streamScenarios } from './scenarios.ts';

/** A process that is silent for this time, in milliseconds, has failed. */
const answerMs = 60_000;
const endFile = fileURLToPath(new URL('./end.js', import.meta.url));
const here = placementHere();
const socket = join(tmpdir(), `rdma-rpc-bench-stream-${process.pid}.sock`);

program
  .name('npm run bench:stream --')
  .description('Measures streams beside those of grpc-js: two processes, interleaved rounds, medians.')
  .option('--markdown <file>', 'write the results to this file (bench/stream/RESULTS.md)')
  .option('--only <name>', 'only scenarios whose name begins with this, for example: download', '')
  .option('--peers <name...>', 'peers', ['rdma-rpc', 'grpc-js'])
  .option('--rounds <n>', 'interleaved rounds', roundsOf, 5)
  .option('--quick', 'one short round: a check that everything runs, not a measurement', false)
  .parse();
const options = program.opts<{
  markdown?: string;
  only: string;
  peers: string[];
  rounds: number;
  quick: boolean;
}>();
const window: Window = options.quick
  ? { warmupMs: 200, measureMs: 200 }
  : { warmupMs: 1000, measureMs: 1000 };

function reply(child: ChildProcess): Promise<FromEnd> {
  return new Promise((resolve, reject) => {
    const done = (): void => {
      clearTimeout(timer);
      child.off('message', onMessage);
      child.off('exit', onExit);
    };
    const onMessage = (message: FromEnd): void => {
      done();
      if (message.type === 'failed') reject(new Error(message.reason));
      else resolve(message);
    };
    const onExit = (code: number | null, signal: string | null): void => {
      done();
      reject(new Error(`the process ended (${signal ?? code})`));
    };
    const timer = setTimeout(() => {
      done();
      reject(new Error(`no answer within ${answerMs} ms`));
    }, answerMs);
    child.on('message', onMessage);
    child.on('exit', onExit);
  });
}

async function start(role: 'server' | 'client', peer: string): Promise<ChildProcess> {
  const flags = (process.env[`RDMA_RPC_BENCH_${role.toUpperCase()}_FLAGS`] ?? '').split(' ').filter(Boolean);
  const command = [process.execPath, ...flags, endFile, role, peer, socket];
  const [file = '', ...rest] = commandOn(here.placement?.[role], command);
  const child = spawn(file, rest, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  await reply(child).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once('exit', resolve));
  child.send({ type: 'stop' } satisfies ToEnd);
  const timer = setTimeout(() => child.kill('SIGKILL'), 3000);
  await exit;
  clearTimeout(timer);
}

async function run(peer: string, round: number, scenarios: readonly StreamScenario[]): Promise<StreamRow[]> {
  const rows: StreamRow[] = [];
  const server = await start('server', peer);
  try {
    const client = await start('client', peer);
    try {
      for (const scenario of scenarios) {
        const order: ToEnd = { type: 'run', scenario, window, serverPid: server.pid ?? 0 };
        client.send(order);
        const answer = await reply(client);
        if (answer.type !== 'measured') throw new Error(`unexpected ${answer.type}`);
        rows.push({ scenario, peer, round, ...answer.measurement });
        const rate = Math.round(answer.measurement.messagesPerSecond).toLocaleString('en-GB');
        console.error(`round ${round} ${peer} ${scenario.name}: ${rate} messages/s`);
      }
    } finally {
      await stop(client);
    }
  } finally {
    await stop(server);
    rmSync(socket, { force: true });
  }
  return rows;
}

const rounds = options.quick ? 1 : options.rounds;
const chosen = streamScenarios.filter(({ name }) => name.startsWith(options.only));
const rows: StreamRow[] = [];
for (let round = 1; round <= rounds; ++round) {
  for (const peer of options.peers) {
    try {
      rows.push(...(await run(peer, round, chosen)));
    } catch (error) {
      console.error(`round ${round} ${peer} NOT RUN: ${error instanceof Error ? error.message : error}`);
      process.exitCode = 1;
    }
  }
}
const explanation = [
  'A download is a stream of messages from the server, an upload is a stream to the server, and a chat',
  'sends one message in each direction at a time. GB/s are those of large messages only, and latencies those',
  'of the chat. The last column is the median, over all rounds, of the ratio to the rate of grpc-js.',
].join(' ');
const report = `# Streams\n\nOne stream runs between two processes. The figures are ${roundsText(rounds)}. ${here.text} Made by \`npm run bench:stream\`.\n\n${explanation}\n\n${streamReport(rows)}\n`;
console.log(report);
if (options.markdown !== undefined) writeFileSync(options.markdown, report);
