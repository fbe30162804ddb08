/**
 * Runs the example examples/kv as two processes, with this terminal and its exit code. Arguments are passed
 * on.
 */
import { spawnSync } from 'node:child_process';
import { root } from './command.mjs';

const demo = ['dist/examples/kv/demo.js', ...process.argv.slice(2)];
const { status, signal } = spawnSync(process.execPath, ['--enable-source-maps', ...demo], {
  cwd: root,
  stdio: 'inherit',
});
if (signal !== null) console.error(`the demo was ended by ${signal}`);
process.exit(status ?? 1);
