/**
 * Provides the package as npm packs it here, and empty folders in which to install it. The tests of this
 * folder use it.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root: string = fileURLToPath(new URL('../..', import.meta.url));
/** Packing builds everything that is out of date, and downloads a package manager when none is installed. */
export const SETUP_LIMIT_MS = 300_000;
/** Arguments with which `npm install` prints only errors. */
export const quiet: readonly string[] = ['--prefer-offline', '--no-audit', '--no-fund'];
/** test/portable/main.mjs tests the binaries for other systems. */
export const env: NodeJS.ProcessEnv = { ...process.env, RDMA_RPC_PREBUILDS: 'local' };

/** Packs the package into `folder`. Returns the path of the tarball, and npm's list of its contents. */
export function pack(folder: string): { readonly tarball: string; readonly files: readonly string[] } {
  const printed = execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: root,
    encoding: 'utf8',
    timeout: SETUP_LIMIT_MS,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [made] = JSON.parse(printed) as [{ filename: string; files: { path: string }[] }];
  return { tarball: join(folder, made.filename), files: made.files.map((file) => file.path) };
}

/** Makes the folder of an application that is still empty. */
export function emptyApp(path: string, name: string): void {
  mkdirSync(path);
  writeFileSync(join(path, 'package.json'), JSON.stringify({ name, private: true, type: 'module' }));
}
