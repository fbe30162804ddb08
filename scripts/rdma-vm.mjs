/**
 * Runs a command in a guest with RDMA devices (test/rdma-vm), after installing the Debian packages for it.
 *
 *   node scripts/rdma-vm.mjs [options of test/rdma-vm/boot.sh] COMMAND ...
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './command.mjs';
import { install } from './debian.mjs';
import { NOT_RUN } from './results.mjs';

/**
 * The command that boots a guest. The guest ends with the process that started it, even if that process is
 * killed.
 */
export const boot = ['setpriv', '--pdeathsig', 'TERM', join(root, 'test/rdma-vm/boot.sh')];

/**
 * Returns the reason why a guest with `link` devices cannot be started here, or '' when it can. It installs
 * packages.
 */
export async function whyNoGuest(link) {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return `the guest needs a Linux host on x64, this is ${process.platform} on ${process.arch}`;
  }
  return (await install('guest')) || (link === 'siw' ? install('siw') : '');
}

/** Returns the value of --link among the options before the command. */
function linkOf(args) {
  for (let at = 0; args[at]?.startsWith('--') && args[at] !== '--'; at += args[at] === '--verbose' ? 1 : 2) {
    if (args[at] === '--link') return args[at + 1];
  }
  return 'rxe';
}

/** Returns the exit status of the command, or one of boot.sh's own. */
function inGuest(args) {
  // npm starts scripts in the project's folder and passes the folder from which it was called.
  const cwd = process.env.npm_lifecycle_event === 'rdma-vm' ? process.env.INIT_CWD : undefined;
  const { status } = spawnSync(boot[0], [...boot.slice(1), ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
    cwd,
  });
  return status ?? 125;
}

if (process.argv[1] === import.meta.filename) {
  const args = process.argv.slice(2);
  const why = await whyNoGuest(linkOf(args));
  if (why !== '') console.error(`rdma-vm: not run: ${why}`);
  process.exitCode = why === '' ? inGuest(args) : NOT_RUN;
}
