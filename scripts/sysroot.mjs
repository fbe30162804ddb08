/**
 * The older Debian with which the package's binaries are linked, and in which they are tested: its C library,
 * libstdc++, libibverbs and librdmacm with their headers. mmdebstrap unpacks them; they are never run or
 * installed here. Debian 11 has glibc 2.31; symbols.mjs ensures that the binaries use at most 2.28.
 * prebuilds.mjs and test/portable/main.mjs use this file. It is kept in RDMA_RPC_SYSROOT_CACHE, or else in
 * the user's cache.
 */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { run } from './command.mjs';
import { progress } from './step.mjs';

const SUITE = 'bullseye';
const DEBIAN = { x64: 'amd64', arm64: 'arm64' };
const PACKAGES = ['libc6-dev', 'libstdc++-10-dev', 'libibverbs-dev', 'librdmacm-dev', 'libuv1-dev'];

const cache = () =>
  process.env.RDMA_RPC_SYSROOT_CACHE ??
  join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'rdma-rpc', 'sysroot');

/**
 * Leaves out the archive of security updates. The contents of that archive disappear when the support of a
 * processor ends. The system needs no security updates, because its files are never run as a service.
 */
const RELEASE_ONLY = `--setup-hook=sed -i /security/d "$1"/etc/apt/sources.list`;

/** Returns the path where the system is or will be. */
export const sysrootPath = (arch) => join(cache(), `${SUITE}-${arch}`);

/**
 * Rewrites absolute links, which assume that this folder is the whole file system, to links inside this
 * folder.
 */
function keepLinksInside(root, folder = root) {
  for (const entry of readdirSync(folder)) {
    const path = join(folder, entry);
    const about = lstatSync(path);
    if (about.isDirectory()) keepLinksInside(root, path);
    if (!about.isSymbolicLink() || !readlinkSync(path).startsWith('/')) continue;
    const target = relative(dirname(path), join(root, readlinkSync(path)));
    rmSync(path);
    symlinkSync(target, path);
  }
}

/** Creates the system unless it exists. Resolves to its path. Rejects when its packages are not available. */
export async function sysroot(arch) {
  const path = sysrootPath(arch);
  if (existsSync(path)) return path;
  mkdirSync(cache(), { recursive: true });
  const work = mkdtempSync(join(cache(), 'unfinished-'));
  try {
    // These are the settings of this machine's apt for downloads: proxies and checks of dates.
    const dump = await run(['apt-config', 'dump', 'Acquire']);
    const options = join(work, 'apt.conf');
    writeFileSync(options, (dump.match(/^Acquire::(?!IndexTargets|cdrom).* ".+";$/gm) ?? []).join('\n'));
    const unpack = [
      '--quiet',
      '--variant=extract',
      `--architectures=${DEBIAN[arch]}`,
      `--aptopt=${options}`,
      RELEASE_ONLY,
    ];
    await progress(`sysroot: Debian ${SUITE} for ${arch}`, () =>
      run(['mmdebstrap', ...unpack, `--include=${PACKAGES.join(',')}`, SUITE, join(work, 'root')]),
    );
    keepLinksInside(join(work, 'root'));
    if (!existsSync(path)) renameSync(join(work, 'root'), path);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return path;
}
