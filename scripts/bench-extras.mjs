/**
 * Runs the benchmark of optional parts of a call, after setup: starts dist/bench/extras/main.js with the
 * given arguments. With `--against REF` it builds the package of that commit first.
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { buildOf } from './bench-against.mjs';
import { root } from './command.mjs';

const args = process.argv.slice(2);
const { against } = parseArgs({ args, options: { against: { type: 'string' } }, strict: false }).values;
if (typeof against === 'string') args.unshift('--tree', await buildOf(against));

const { status } = spawnSync(process.execPath, ['dist/bench/extras/main.js', ...args], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
