/**
 * `rdma-rpc build-addon`: compiles the addon of the installed package, for systems that its binaries do not
 * load on. It goes to build/Release of the package, where runtime/native/native.ts looks first.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from '#commander';
import pc from '#picocolors';

interface Need {
  /** Any of these programs. */
  readonly programs: readonly string[];
  /** The Debian package that brings it. */
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

/** Debian packages that bring what is not there. */
export function lacking(isThere: (program: string) => boolean = onPath): string[] {
  return needs.filter(({ programs }) => !programs.some(isThere)).map(({ debian }) => debian);
}

function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'CMakeLists.txt'))) {
    if (folder === dirname(folder)) throw new Error('the sources of the addon are not beside this command');
    folder = dirname(folder);
  }
  return folder;
}

/** Runs `cmake` with these arguments. Its output is shown when it fails. */
function cmake(folder: string, args: readonly string[]): void {
  // The Node that runs this, not another one on PATH, is asked for headers.
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

/** Resolves to nothing; throws with what is missing or what the compiler said. */
function buildAddon(): string {
  const packages = lacking();
  if (packages.length > 0) {
    const debian = `sudo apt-get install ${packages.join(' ')}`;
    throw new Error(`missing: ${packages.join(', ')}. On Debian and Ubuntu: ${debian}`);
  }
  const folder = packageRoot();
  const build = join(folder, 'build', 'addon');
  rmSync(build, { recursive: true, force: true });
  // -w: the compiler is any that the machine has, and warnings are for those who work on the project.
  const options = ['-DRDMA_RPC_ADDON=ON', '-DCMAKE_BUILD_TYPE=Release', '-DCMAKE_CXX_FLAGS=-w'];
  cmake(folder, ['-S', folder, '-B', build, ...options]);
  cmake(folder, ['--build', build, '--parallel', '2']);
  const product = join(folder, 'build', 'Release', 'rdma_rpc.node');
  // In a process of its own: this one may have tried another binary already.
  const script = `require(${JSON.stringify(product)}).boundary()`;
  const tried = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });
  if (tried.status !== 0) throw new Error(`what was built does not load:\n${tried.stderr.trim()}`);
  return product;
}

export function addBuildAddonCommand(program: Command): void {
  program
    .command('build-addon')
    .description('compile the native addon of this package, where its binaries do not load')
    .action(() => {
      console.log('compiling; this takes a minute or two');
      try {
        console.log(`built ${buildAddon()}`);
      } catch (error) {
        console.error(pc.red(`error: ${(error as Error).message}`));
        process.exitCode = 1;
      }
    });
}
