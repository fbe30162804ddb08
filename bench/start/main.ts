/**
 * Measures how long a program takes to start. It measures from the start of a fresh process until its modules
 * are loaded, and until its first answer has arrived (a client) or it listens (a server). It is compared with
 * a Node process that does nothing, with grpc-js, and with the older build of `--tree`. All of them run in
 * turn, many times. scripts/bench-start.mjs starts this program.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { program } from 'commander';
import { end } from '../children.ts';
import { roundsOf } from '../options.ts';
import { packageRoot } from '../paths.ts';
import { machineText, roundsText, table } from '../report.ts';
import { median } from '../rows.ts';
import type { Start } from './first.ts';

program
  .name('npm run bench:start --')
  .description('Measures how long fresh processes take to start: CPU and time, beside bare Node and grpc-js.')
  .option('--rounds <n>', 'fresh processes of each kind', roundsOf, 20)
  .option('--against <ref>', 'measure the build of this commit as well')
  .option('--tree <directory>', 'where the package of that commit is (scripts/bench-start.mjs)')
  .parse();
const options = program.opts<{ rounds: number; against?: string; tree?: string }>();

interface Measured extends Start {
  /** Time from the start of the process, in ms. */
  readonly wallMs: number;
}

/** A program to start, with its arguments except for the address, which is the last argument. */
interface Program {
  readonly peer: string;
  readonly client: readonly string[];
  readonly server: readonly string[];
}

const own = (name: string): string => fileURLToPath(new URL(`./${name}.js`, import.meta.url));
const ours: Program = { peer: 'rdma-rpc', client: [own('ours-client')], server: [own('ours-server')] };
const bare: Program = { peer: 'bare Node', client: [own('bare')], server: [own('bare')] };
const programs: Program[] = [bare, ours];
if (options.tree !== undefined) {
  const older = (name: string): string => join(options.tree!, 'dist', 'bench', 'start', `${name}.js`);
  programs.push({
    peer: `rdma-rpc ${options.against}`,
    client: [older('ours-client')],
    server: [older('ours-server')],
  });
}
const grpcFile = join(packageRoot, 'bench', 'peers', 'start-grpc-js.mjs');
const grpc: Program = { peer: 'grpc-js', client: [grpcFile, 'client'], server: [grpcFile, 'server'] };
if (existsSync(join(packageRoot, 'bench', 'peers', 'node_modules'))) programs.push(grpc);

/** Starts the program and waits for its report. */
async function started(args: readonly string[]): Promise<[Measured, ChildProcess]> {
  const from = performance.now();
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout! })) {
    const wallMs = performance.now() - from;
    return [{ ...(JSON.parse(line) as Start), wallMs }, child];
  }
  throw new Error(`${args.join(' ')} has ended without an answer`);
}

let sockets = 0;

/** Runs one process of each side, one after the other. */
async function round({ client, server }: Program): Promise<[Measured, Measured]> {
  const socket = join(tmpdir(), `rdma-rpc-start-${process.pid}-${++sockets}.sock`);
  const address = `unix:${socket}`;
  const [listening, serving] = await started([...server, address]);
  const [answered, calling] = await started([...client, address]);
  await Promise.all([end(serving), end(calling)]);
  rmSync(socket, { force: true });
  return [answered, listening];
}

const found = programs.map((): [Measured, Measured][] => []);
for (let i = 0; i < options.rounds; i++)
  for (const [at, each] of programs.entries()) found[at]!.push(await round(each));

const sides = ['client', 'server'] as const;
const medianOf = (at: number, side: number, pick: (measured: Measured) => number): number =>
  median(found[at]!.map((each) => pick(each[side]!)));

const picks: readonly ((measured: Measured) => number)[] = [
  ({ importUs }) => importUs / 1000,
  ({ doneUs }) => doneUs / 1000,
  ({ wallMs }) => wallMs,
];
const grpcAt = programs.indexOf(grpc);

/**
 * Returns the figures of one program and side, and its excess over bare Node as a multiple of grpc-js's
 * excess.
 */
function line(at: number, side: number): string[] {
  const beyond = (which: number, pick: (measured: Measured) => number): number =>
    medianOf(which, side, pick) - medianOf(0, side, pick);
  const ratio = (pick: (measured: Measured) => number): string =>
    grpcAt === -1 || at === 0 ? '-' : (beyond(at, pick) / beyond(grpcAt, pick)).toFixed(2);
  return [
    `${sides[side]}, ${programs[at]!.peer}`,
    ...picks.map((pick) => medianOf(at, side, pick).toFixed(0)),
    ...picks.map(ratio),
  ];
}

const columns = ['', 'import, CPU ms', 'done, CPU ms', 'done, ms', 'import ×', 'CPU ×', 'time ×'];
console.log(`# Start\n\n${machineText()}, ${roundsText(options.rounds, 'fresh processes of each, in turn')}.
\`done\`: the client has its first answer, the server listens. \`×\`: beyond bare Node, of what grpc-js takes.
`);
console.log(table([columns, ...sides.flatMap((_, side) => programs.map((_, at) => line(at, side)))]));
