/**
 * The benchmark of optional parts of a call. It measures how much CPU time an interceptor, an entry of
 * metadata or a signal costs, and the cost of messages of many fields. It starts a pair of processes for each
 * row and round. With `--tree`, the pairs are of this build and of an older build in turn. It sleeps while
 * the processes measure, and prints the minimum of many short windows. scripts/bench-extras.mjs starts this
 * program.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { program } from 'commander';
import { answer, end } from '../children.ts';
import { cpuMeter } from '../cpu.ts';
import { roundsOf } from '../options.ts';
import { figure, machineText, table } from '../report.ts';
import { type ExtrasRow, rows } from './rows.ts';

program
  .name('npm run bench:extras --')
  .description(
    'Measures the cost of interceptors, metadata, signals and messages of many parts. Runs two processes, and takes the minimum of many windows.',
  )
  .option('--only <name...>', 'only rows whose name begins with one of these, for example: interceptors', [])
  .option('--rounds <n>', 'rounds', roundsOf, 3)
  .option('--against <ref>', 'compare with the build of this commit, in alternating rounds')
  .option('--tree <directory>', 'where the package of that commit is (scripts/bench-extras.mjs)')
  .option('--quick', 'one short round: a check that everything runs, not a measurement', false)
  .parse();
const options = program.opts<{
  only: string[];
  rounds: number;
  against?: string;
  tree?: string;
  quick: boolean;
}>();
const [warmupMs, windowMs, windows] = options.quick ? [100, 50, 1] : [500, 60, 12];
const rounds = options.quick ? 1 : options.rounds;

interface Measured {
  readonly callsPerSecond: number;
  /** CPU time per call, in microseconds. */
  readonly clientUs: number;
  readonly serverUs: number;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const ownEnd = fileURLToPath(new URL('./end.js', import.meta.url));
let pairs = 0;

/** Returns the number of calls that this side has made so far. */
function callsOf(caller: ChildProcess): Promise<number> {
  const calls = answer<number>(caller);
  caller.send('calls');
  return calls;
}

const bothUs = ({ clientUs, serverUs }: Measured): number => clientUs + serverUs;

async function measureOnce(
  client: ChildProcess,
  server: ChildProcess,
  caller: ChildProcess,
  ms: number,
): Promise<Measured> {
  const from = performance.now();
  const before = await callsOf(caller);
  const meters = [client, server].map((each) => cpuMeter([each.pid ?? 0]));
  await sleep(ms);
  const calls = (await callsOf(caller)) - before;
  const seconds = (performance.now() - from) / 1000;
  const [clientUs, serverUs] = meters.map((meter) => (meter().cpuPercent * 1e4 * seconds) / calls);
  return { callsPerSecond: calls / seconds, clientUs: clientUs!, serverUs: serverUs! };
}

async function measure(file: string, row: ExtrasRow): Promise<Measured> {
  const socket = join(tmpdir(), `rdma-rpc-extras-${process.pid}-${++pairs}.sock`);
  const started: ChildProcess[] = [];
  const start = async (role: string): Promise<ChildProcess> => {
    const child = spawn(process.execPath, [file, role, row.name, socket], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    started.push(child);
    await answer(child);
    return child;
  };
  try {
    const server = await start('server');
    const client = await start('client');
    await sleep(warmupMs);
    const measured: Measured[] = [];
    // A window with few calls would not be accurate, so such a window is longer.
    const longer = row.message === 'small' && row.bytes < 1024 * 1024 ? 1 : 4;
    const caller = row.isReverse ? server : client;
    while (measured.length < windows / longer)
      measured.push(await measureOnce(client, server, caller, windowMs * longer));
    // The minimum is the window that other processes on the machine have disturbed least.
    return measured.reduce((least, each) => (bothUs(each) < bothUs(least) ? each : least));
  } finally {
    await Promise.all(started.map(end));
    rmSync(socket, { force: true });
  }
}

/**
 * For each part that the row names, returns the CPU time of both sides that a call of `row` takes beyond a
 * plain call.
 */
function eachUs(row: ExtrasRow, own: Measured, plain: Measured): number {
  return row.each === 0 ? bothUs(own) : (bothUs(own) - bothUs(plain)) / row.each;
}

type Rounds = Map<string, Measured>[];

/** Returns the lowest of the rounds, for the row and for the plain call. */
function leastOf(name: string, of: Rounds): Measured {
  return of
    .map((round) => round.get(name)!)
    .reduce((least, each) => (bothUs(each) < bothUs(least) ? each : least));
}

function eachOf(row: ExtrasRow, of: Rounds): number {
  return eachUs(row, leastOf(row.name, of), leastOf('plain', of));
}

const fixed = (value: number): string => (Number.isFinite(value) ? value.toFixed(2) : '-');

function line(row: ExtrasRow, now: Rounds, before: Rounds): string[] {
  const { callsPerSecond, clientUs, serverUs } = leastOf(row.name, now);
  const each = eachOf(row, now);
  const goal = row.goalUs === undefined ? '-' : `${each <= row.goalUs ? 'reached' : 'missed'}: ${row.goalUs}`;
  const cells = [row.name, figure(callsPerSecond), fixed(clientUs), fixed(serverUs), fixed(each), goal];
  if (before.length === 0) return cells;
  const older = eachOf(row, before);
  return [...cells, fixed(older), fixed(older / each)];
}

const chosen = rows.filter(
  ({ name }) =>
    name === 'plain' || options.only.length === 0 || options.only.some((each) => name.startsWith(each)),
);
const trees: readonly string[] =
  options.tree === undefined ? [ownEnd] : [ownEnd, join(options.tree, 'dist', 'bench', 'extras', 'end.js')];
const found: Rounds[] = trees.map(() => []);
for (let round = 0; round < rounds; round++) {
  for (const each of found) each.push(new Map());
  for (const row of chosen) {
    // The order alternates, because the second of two builds may find the machine warmer, or slower.
    const order = trees.map((_, i) => (round % 2 === 0 ? i : trees.length - 1 - i));
    for (const tree of order) found[tree]!.at(-1)!.set(row.name, await measure(trees[tree]!, row));
  }
}
const [now = [], before = []] = found;
const columns = ['row', 'calls/s', 'client, us', 'server, us', 'each, us', 'goal'];
if (before.length > 0) columns.push('each before', 'times less');
console.log(`# Optional parts of calls\n\n${machineText()}, the minimum of ${rounds * windows} windows${options.against === undefined ? '' : `, against ${options.against}`}.
CPU time of both sides in microseconds. \`each\`: the time that one interceptor, entry or signal adds to a plain call. For messages, the time of the call itself.
`);
console.log(table([columns, ...chosen.map((row) => line(row, now, before))]));
