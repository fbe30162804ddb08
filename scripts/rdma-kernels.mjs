/**
 * The kernels that the guest of test/rdma/main.mjs can run, by version, with the package of Debian's archive
 * (test/rdma-vm/kernel.sh). The release of this machine has one of these kernels. The other comes from a
 * neighbouring release, whose build tools run here.
 */
import { readFileSync } from 'node:fs';

const packages = {
  6.1: { bookworm: 'linux-image-amd64', other: 'linux-image-amd64/bookworm' },
  6.12: {
    bookworm: 'linux-image-amd64/bookworm-backports',
    trixie: 'linux-image-amd64',
    other: 'linux-image-amd64/trixie',
  },
};

export const kernels = Object.keys(packages);

function release() {
  try {
    return /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? '';
  } catch {
    return ''; // A guest is not available there, and the program that boots one reports this.
  }
}

/**
 * Returns the value of boot.sh's --kernel for `version`, one of `kernels`, on a machine with this `release`
 * of Debian.
 */
export function kernelPackage(version, on = release()) {
  return packages[version][on] ?? packages[version].other;
}
