/**
 * Measures the curves, after setup: starts dist/bench/scale/main.js with the given arguments. It compares
 * with the same libraries as scripts/bench.mjs.
 */
import { spawnSync } from 'node:child_process';
import { installPeers } from './bench-peers.mjs';
import { root } from './command.mjs';

await installPeers();
const { status } = spawnSync(
  process.execPath,
  ['--enable-source-maps', 'dist/bench/scale/main.js', ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit' },
);
process.exit(status ?? 1);
