/**
 * The benchmark of real RDMA. It measures in a guest with soft-RoCE or on the given devices, prints medians
 * and ratios, and then whether each goal is reached. scripts/bench-verbs.mjs starts this program.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../paths.ts';
import { manyTaskOf, parseOptions, taskOf } from './options.ts';
import { perfReportOf, reportOf } from './report.ts';
import type { Row } from './rows.ts';
import { mrCacheHit } from './session.ts';

/**
 * A round takes about half a minute in an emulated guest, and a round of --perf takes two minutes. Several
 * such machines at once are slower.
 */
const guestRoundLimitS = { sessions: 150, perf: 400 };
const bootLimitS = 60;

const options = parseOptions(process.argv);

/**
 * Returns the time limit. Opening a session takes half a second in an emulated guest, which does a thousand
 * calls a second.
 */
const manyLimitS = (sessions: number): number => 300 + sessions + Math.ceil(options.calls / 500);

/** Runs a program on the machine that has the devices. */
function run(program: string, args: readonly string[], limitS: number, share: readonly string[] = []) {
  const guest = [
    'scripts/rdma-vm.mjs',
    ...share,
    '--mem',
    '3072',
    '--timeout',
    String(limitS),
    process.execPath,
  ];
  const command = [...(options.device === undefined ? guest : []), program, ...args];
  return spawnSync(process.execPath, command, { cwd: packageRoot, stdio: 'inherit' }).status;
}

if (options.sessions !== undefined) {
  const many = JSON.stringify(manyTaskOf(options, options.sessions));
  process.exit(run('dist/bench/verbs/many.js', [many], manyLimitS(options.sessions)) ?? 1);
}
const task = taskOf(options);
const shared = join(packageRoot, 'build/bench-verbs');
const file = join(shared, 'rows.json');
mkdirSync(shared, { recursive: true });
rmSync(file, { force: true });

const limitS = bootLimitS + options.rounds * guestRoundLimitS[task.measure];
const status = run('dist/bench/verbs/rounds.js', [file, JSON.stringify(task)], limitS, ['--share', shared]);
if (status === 0) {
  const rows = JSON.parse(readFileSync(file, 'utf8')) as Row[];
  const where =
    options.device === undefined
      ? 'two soft-RoCE devices in an emulated guest, so compare only the ratios'
      : `devices ${options.device.join(' and ')}`;
  const perf = options.perf === true;
  const report = perf
    ? perfReportOf(rows, options.rounds, where)
    : reportOf(rows, await mrCacheHit(), options.rounds, where);
  console.log(`\n${report}`);
  if (options.markdown !== undefined) writeFileSync(options.markdown, report);
  process.exitCode = rows.some((row) => row.why !== '') ? 1 : 0;
} else {
  process.exitCode = status ?? 1;
}
