/** Before `npm pack`: everything is built, and the binaries for this platform lie where the package ships them. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './command.mjs';

// npm takes what prepack prints on stdout for its own (pack --json): all goes to stderr.
const setup = spawnSync(process.execPath, ['scripts/setup.mjs'], { cwd: root, stdio: ['ignore', 2, 2] });
if (setup.status !== 0) process.exit(1);
const built = join(root, 'build/Release');
const target = join(root, 'prebuilds', `${process.platform}-${process.arch}`);
mkdirSync(target, { recursive: true });
copyFileSync(join(built, 'rdma_rpc.node'), join(target, 'rdma_rpc.node'));
// Only where the headers of libibverbs are: without it the package has no RDMA devices and says so.
const plugin = 'rdma_rpc_verbs.so';
rmSync(join(target, plugin), { force: true });
if (existsSync(join(built, plugin))) copyFileSync(join(built, plugin), join(target, plugin));
