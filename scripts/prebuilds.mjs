/**
 * Builds the binaries that the package ships, prebuilds/linux-x64 and linux-arm64. They are linked with an
 * older Debian (sysroot.mjs, native/portable.cmake), so that they load wherever Node 20 runs. prepack.mjs,
 * release.mjs and test/portable/main.mjs call it. Only installCompilers() installs anything.
 */
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { configure } from './cmake.mjs';
import { root, run } from './command.mjs';
import { install, missing } from './debian.mjs';
import { step } from './step.mjs';
import { sysroot } from './sysroot.mjs';

export const ARCHITECTURES = ['x64', 'arm64'];
export const PRODUCTS = ['rdma_rpc.node', 'rdma_rpc_verbs.so', 'rdma_rpc_perf'];
const EMULATOR = { arm64: 'qemu-aarch64-static', x64: 'qemu-x86_64-static' };

export const buildDirectory = (arch) => `build/portable-${arch}`;
export const prebuilt = (arch) => join('prebuilds', `linux-${arch}`);

/** Returns the purposes, in debian.mjs, of the packages that building the binaries for `arch` needs. */
const purposesOf = (arch) => ['build', 'sysroot', `portable ${arch}`];

/** Returns the reason why the binaries for `arch` cannot be built here, or '' when they can be built. */
export function whyNot(arch) {
  if (process.platform !== 'linux') return 'it needs Linux';
  const lacking = purposesOf(arch).flatMap(missing);
  return lacking.length === 0 ? '' : `missing Debian packages: ${[...new Set(lacking)].join(', ')}`;
}

/**
 * Installs the compilers and tools for `arch` if they are missing, with root or password-less sudo. Resolves
 * to '' or to the reason why the binaries still cannot be built, with the command that installs the tools.
 */
export async function installCompilers(arch) {
  if (process.platform !== 'linux') return 'it needs Linux';
  for (const purpose of purposesOf(arch)) {
    const lacking = await install(purpose);
    if (lacking !== '') return lacking;
  }
  return '';
}

/** Replaces the file in one step, because two tests may pack the package at once. */
function replace(from, to) {
  const unfinished = `${to}.${process.pid}`;
  copyFileSync(from, unfinished);
  renameSync(unfinished, to);
}

/**
 * Configures CMake. With `tests` it also configures the native tests, which run in an emulator if `arch` is
 * that of another processor.
 */
export async function configurePortable(arch, tests = false) {
  const options = [
    `-DCMAKE_TOOLCHAIN_FILE=${join(root, 'native/portable.cmake')}`,
    '-DCMAKE_BUILD_TYPE=Release',
    `-DRDMA_RPC_ARCH=${arch}`,
    `-DRDMA_RPC_SYSROOT=${await sysroot(arch)}`,
    `-DRDMA_RPC_EMULATOR=${tests && arch !== process.arch ? EMULATOR[arch] : ''}`,
    `-DRDMA_RPC_TESTS=${tests ? 'ON' : 'OFF'}`,
    '-DRDMA_RPC_ADDON=ON',
  ];
  const directory = buildDirectory(arch);
  await configure(directory, ['cmake', '-S', '.', '-B', directory, ...options]);
}

/**
 * Builds the binaries if an input has changed, and copies them to the place from which the package takes
 * them.
 */
export async function buildPrebuilt(arch) {
  const directory = buildDirectory(arch);
  const target = join(root, prebuilt(arch));
  const outputs = PRODUCTS.map((name) => join(prebuilt(arch), name));
  await step({
    name: `portable-${arch}`,
    title: `addon for linux-${arch}`,
    inputs: ['CMakeLists.txt', 'native', 'package-lock.json'],
    ignore: ['native/test'],
    outputs,
    action: async () => {
      await configurePortable(arch);
      const targets = ['--target', 'rdma_rpc', 'rdma_rpc_verbs', 'rdma_rpc_perf'];
      await run(['cmake', '--build', directory, '--parallel', '2', ...targets]);
      mkdirSync(target, { recursive: true });
      for (const name of PRODUCTS) replace(join(root, directory, name), join(target, name));
    },
  });
}

/**
 * Copies the build that this machine has made for itself, instead of building anew. That build needs at least
 * the glibc of this machine.
 */
export function copyLocal() {
  const target = join(root, prebuilt(process.arch));
  const built = (name) => join(root, 'build/Release', name);
  // Set-up runs without a compiler if a binary already exists, and that may be this binary.
  if (!existsSync(built(PRODUCTS[0]))) return;
  // Without its stamp, buildPrebuilt() replaces these binaries again.
  rmSync(join(root, 'build', '.stamps', `portable-${process.arch}`), { force: true });
  mkdirSync(target, { recursive: true });
  for (const name of PRODUCTS) {
    // The plug-in is built only where the headers of libibverbs are installed. Without it the package has no
    // RDMA devices and reports that.
    if (existsSync(built(name))) replace(built(name), join(target, name));
    else rmSync(join(target, name), { force: true });
  }
}
