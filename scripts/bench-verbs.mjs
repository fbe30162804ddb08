/**
 * Runs the benchmark of real RDMA, after setup: installs perftest, builds the native part and starts
 * dist/bench/verbs/main.js with the given arguments.
 */
import { spawnSync } from 'node:child_process';
import { configure } from './cmake.mjs';
import { root, run } from './command.mjs';
import { install } from './debian.mjs';
import { progress } from './step.mjs';

for (const purpose of ['verbs', 'perftest']) {
  const why = await install(purpose);
  if (why === '') continue;
  console.error(`bench:verbs: not run: ${why}`);
  process.exit(77);
}

const directory = 'build/bench';
await progress('native benchmarks (CMake)', async () => {
  await configure(directory, ['cmake', '-S', '.', '-B', directory, '-DRDMA_RPC_BENCH=ON']);
  await run(['cmake', '--build', directory, '--parallel', '2', '--target', 'verbs_session', 'mr_cache_hit']);
});

const { status } = spawnSync(process.execPath, ['dist/bench/verbs/main.js', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
