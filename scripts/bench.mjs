/**
 * Runs the benchmark, after setup: installs the frameworks with which it compares (bench/peers, once), builds
 * the limit's addon and the plain C sender, and starts dist/bench/main.js with the given arguments. With
 * `--against REF` it builds the package of that commit instead of these.
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { buildOf } from './bench-against.mjs';
import { installPeers, succeeded } from './bench-peers.mjs';
import { configure } from './cmake.mjs';
import { root, run } from './command.mjs';
import { step } from './step.mjs';

const args = process.argv.slice(2);
// Parsing is not strict, because main.js reports other options, and a missing value of --against.
const { against } = parseArgs({ args, options: { against: { type: 'string' } }, strict: false }).values;

const limit = () =>
  step({
    name: 'bench-limit',
    title: 'the limit (CMake)',
    inputs: ['bench/limit'],
    outputs: ['build/limit/Release/limit.node'],
    action: async () => {
      await configure('build/limit', ['cmake', '-S', 'bench/limit', '-B', 'build/limit']);
      await run(['cmake', '--build', 'build/limit']);
    },
  });

const sender = () =>
  step({
    name: 'bench-sender',
    title: 'the C sender (CMake)',
    inputs: ['bench/native'],
    outputs: ['build/bench/tcp_stream'],
    action: async () => {
      await configure('build/bench', ['cmake', '-S', '.', '-B', 'build/bench', '-DRDMA_RPC_BENCH=ON']);
      await run(['cmake', '--build', 'build/bench', '--target', 'tcp_stream']);
    },
  });

if (typeof against === 'string') {
  try {
    args.unshift('--tree', await buildOf(against));
  } catch (error) {
    console.error(`--against ${against}: ${error.message}\n${error.output ?? ''}`);
    process.exit(1);
  }
} else {
  await installPeers();
  for (const build of [limit, sender])
    if (!(await succeeded(build()))) console.error('! its rows will be missing');
}

const { status } = spawnSync(process.execPath, ['--enable-source-maps', 'dist/bench/main.js', ...args], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
