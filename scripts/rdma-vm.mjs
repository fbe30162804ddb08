/**
 * Runs a command in a guest with RDMA devices (test/rdma-vm), after the Debian packages for it have been installed.
 *
 *   node scripts/rdma-vm.mjs [options of test/rdma-vm/boot.sh] COMMAND ...
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './command.mjs';
import { install } from './debian.mjs';

/** What boot.sh ends with when what the guest is made of cannot be had. */
export const NOT_RUN = 77;

/** Why no guest can be started here; '' when one can. Installs packages. */
export async function whyNoGuest() {
  if (process.arch !== 'x64') return `the guest needs an x64 host, this is ${process.arch}`;
  return install('guest');
}

/** The exit status of the command, or one of boot.sh's own. Its output goes to this terminal. */
export function inGuest(args, env = {}) {
  const boot = join(root, 'test/rdma-vm/boot.sh');
  const { status } = spawnSync(boot, args, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...env },
  });
  return status ?? 125;
}

if (process.argv[1] === import.meta.filename) {
  const why = await whyNoGuest();
  if (why !== '') console.error(`rdma-vm: not run: ${why}`);
  process.exit(why === '' ? inGuest(process.argv.slice(2)) : NOT_RUN);
}
