/** Runs the simulated fleet, after setup: starts dist/bench/fleet/main.js with the given arguments. */
import { spawnSync } from 'node:child_process';
import { root } from './command.mjs';

const { status } = spawnSync(process.execPath, ['dist/bench/fleet/main.js', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
