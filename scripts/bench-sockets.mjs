/**
 * Runs the benchmark of sockets and of the tunnel, after setup: starts dist/bench/sockets/main.js with the
 * given arguments. It does not install the programs whose traffic goes through the tunnel, because their
 * packages start services.
 */
import { spawnSync } from 'node:child_process';
import { root } from './command.mjs';
import { missing } from './debian.mjs';

const lacking = ['redis', 'iperf3', 'haproxy'].flatMap(missing);
if (lacking.length > 0)
  console.error(`bench:sockets: some rows will not run. Missing Debian packages: ${lacking.join(', ')}`);
const { status } = spawnSync(
  process.execPath,
  ['--enable-source-maps', 'dist/bench/sockets/main.js', ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit' },
);
process.exit(status ?? 1);
