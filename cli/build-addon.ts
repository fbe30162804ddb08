/**
 * `rdma-rpc build-addon`: compiles the addon of the installed package, for systems on which its binaries do
 * not load. The result is written to build/Release of the package, where runtime/native/native.ts looks
 * first. If this command belongs to another package, the result is also written to build/Release of rdma-rpc.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { accessSync, constants, cpSync, existsSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from '#commander';
import pc from '#picocolors';

interface Need {
  /** One of these programs must be installed. */
  readonly programs: readonly string[];
  /** The Debian package that contains the program. */
  readonly debian: string;
}

const needs: readonly Need[] = [
  { programs: ['c++', 'g++', 'clang++'], debian: 'g++' },
  { programs: ['cmake'], debian: 'cmake' },
  { programs: ['make', 'ninja'], debian: 'make' },
];

function onPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Returns the Debian packages that contain the missing programs. */
export function lacking(isThere: (program: string) => boolean = onPath): string[] {
  return needs.filter(({ programs }) => !programs.some(isThere)).map(({ debian }) => debian);
}

function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'CMakeLists.txt'))) {
    if (folder === dirname(folder))
      throw new Error(
        'the sources of the addon were not found beside this command: install the package rdma-rpc-cli again',
      );
    folder = dirname(folder);
  }
  return folder;
}

/** Runs `cmake` with these arguments. Shows the output of cmake when it fails. */
function cmake(folder: string, args: readonly string[]): void {
  // The headers are those of the Node that runs this command, not those of another Node on PATH.
  const env = {
    ...process.env,
    PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}`,
  };
  const done: SpawnSyncReturns<string> = spawnSync('cmake', args, { cwd: folder, env, encoding: 'utf8' });
  if (done.status === 0) return;
  const output = `${done.stdout ?? ''}${done.stderr ?? ''}`.trim();
  throw new Error(
    `cmake ${args.join(' ')} ended with ${done.status ?? done.signal ?? done.error?.message}:\n${output}`,
  );
}

/**
 * Returns the folder of the package rdma-rpc that the caller's programs import, or undefined where it is not
 * found.
 */
function runtimeRoot(): string | undefined {
  try {
    return dirname(createRequire(join(process.cwd(), 'package.json')).resolve('rdma-rpc/package.json'));
  } catch {
    return undefined;
  }
}

/**
 * Returns the path of the addon. Throws an error that names missing programs or contains the compiler's
 * output.
 */
function buildAddon(): string {
  const packages = lacking();
  if (packages.length > 0) {
    const debian = `sudo apt-get install ${packages.join(' ')}`;
    throw new Error(`missing: ${packages.join(', ')}. On Debian and Ubuntu: ${debian}`);
  }
  console.log('compiling; this takes a minute or two');
  const folder = packageRoot();
  const build = join(folder, 'build', 'addon');
  rmSync(build, { recursive: true, force: true });
  // -w is passed, because any compiler of the machine may be used, and warnings are for developers of this
  // project.
  const options = ['-DRDMA_RPC_ADDON=ON', '-DCMAKE_BUILD_TYPE=Release', '-DCMAKE_CXX_FLAGS=-w'];
  cmake(folder, ['-S', folder, '-B', build, ...options]);
  cmake(folder, ['--build', build, '--parallel', '2']);
  const product = join(folder, 'build', 'Release', 'rdma_rpc.node');
  // The addon is tested in a separate process, because this process may already have tried another binary.
  const script = `require(${JSON.stringify(product)}).boundary()`;
  const tried = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });
  if (tried.status !== 0) throw new Error(`the compiled addon does not load:\n${tried.stderr.trim()}`);
  const user = runtimeRoot();
  if (user === undefined || user === folder) return product;
  const release = join('build', 'Release');
  cpSync(join(folder, release), join(user, release), { recursive: true });
  return join(user, release, 'rdma_rpc.node');
}

export function addBuildAddonCommand(program: Command): void {
  program
    .command('build-addon')
    .description('compile the native addon of this package, for systems on which its binaries do not load')
    .action(() => {
      try {
        console.log(`built ${buildAddon()}`);
      } catch (error) {
        console.error(pc.red(`error: ${(error as Error).message}`));
        process.exitCode = 1;
      }
    });
}
