/**
 * The benchmark, after setup: installs the frameworks that it compares with (bench/peers, once), builds the limit's addon and the plain C
 * sender, and starts dist/bench/main.js with the arguments given. With `--against REF` it builds that commit instead.
 */
import { spawnSync } from 'node:child_process';
import { buildOf } from './bench-against.mjs';
import { installPeers, succeeded } from './bench-peers.mjs';
import { configure } from './cmake.mjs';
import { root, run } from './command.mjs';
import { step } from './step.mjs';

const args = process.argv.slice(2);
const ref = args[args.indexOf('--against') + 1];
if (args.includes('--against') && ref !== undefined) {
  try {
    args.push('--tree', await buildOf(ref));
  } catch (error) {
    console.error(`--against ${ref}: ${error.message}\n${error.output ?? ''}`);
    process.exit(1);
  }
} else {
  await installPeers();
}

const limit = step({
  name: 'bench-limit',
  title: 'the limit (CMake)',
  inputs: ['bench/limit'],
  outputs: ['build/limit/Release/limit.node'],
  action: async () => {
    await configure('build/limit', ['cmake', '-S', 'bench/limit', '-B', 'build/limit']);
    await run(['cmake', '--build', 'build/limit']);
  },
});
if (!(await succeeded(limit))) console.error('! its rows will be missing');

const sender = step({
  name: 'bench-sender',
  title: 'the C sender (CMake)',
  inputs: ['bench/native'],
  outputs: ['build/bench/tcp_stream'],
  action: async () => {
    await configure('build/bench', ['cmake', '-S', '.', '-B', 'build/bench', '-DRDMA_RPC_BENCH=ON']);
    await run(['cmake', '--build', 'build/bench', '--target', 'tcp_stream']);
  },
});
if (!(await succeeded(sender))) console.error('! its rows will be missing');

const { status } = spawnSync(process.execPath, ['--enable-source-maps', 'dist/bench/main.js', ...args], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
