/** The package as npm packs it here, and empty folders to install it in. For the tests of this folder. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root: string = fileURLToPath(new URL('../..', import.meta.url));
/** Packing builds what is not up to date, and a package manager is fetched where there is none. */
export const SETUP_LIMIT_MS = 300_000;
/** Of `npm install`: nothing is said but what is wrong. */
export const quiet: readonly string[] = ['--prefer-offline', '--no-audit', '--no-fund'];
/** The binaries for other systems are the matter of test/portable/main.mjs. */
export const env: NodeJS.ProcessEnv = { ...process.env, RDMA_RPC_PREBUILDS: 'local' };

/** Packs into `folder`. What came of it, and what npm says is in it. */
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

/** Makes the folder of an application that has nothing yet. */
export function emptyApp(path: string, name: string): void {
  mkdirSync(path);
  writeFileSync(join(path, 'package.json'), JSON.stringify({ name, private: true, type: 'module' }));
}
