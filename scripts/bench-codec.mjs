/**
 * Runs the benchmark of the codec, after setup: starts dist/bench/codec/main.js with the given arguments.
 */
import { spawnSync } from 'node:child_process';
import { root } from './command.mjs';
import { install } from './debian.mjs';

const noProtoc = await install('protoc');
if (noProtoc !== '') console.log(`! generators side by side are left out: ${noProtoc}`);

const { status } = spawnSync(process.execPath, ['dist/bench/codec/main.js', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
