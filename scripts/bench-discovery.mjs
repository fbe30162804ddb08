/**
 * Runs the benchmark of registries, after setup: installs etcd if it is allowed to, then starts
 * dist/bench/discovery/main.js with the given arguments.
 */
import { spawnSync } from 'node:child_process';
import { root } from './command.mjs';
import { install } from './debian.mjs';

const lacking = await install('etcd');
if (lacking !== '') {
  console.error(`not run: ${lacking}`);
  process.exit(1);
}
const { status } = spawnSync(process.execPath, ['dist/bench/discovery/main.js', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
