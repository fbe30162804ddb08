/** Before `npm pack`: everything is built, and the addon of this platform lies where the package ships it. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './command.mjs';

// npm takes what prepack prints on stdout for its own (pack --json): all goes to stderr.
const setup = spawnSync(process.execPath, ['scripts/setup.mjs'], { cwd: root, stdio: ['ignore', 2, 2] });
if (setup.status !== 0) process.exit(1);
const target = join(root, 'prebuilds', `${process.platform}-${process.arch}`, 'rdma_rpc.node');
mkdirSync(dirname(target), { recursive: true });
copyFileSync(join(root, 'build/Release/rdma_rpc.node'), target);
