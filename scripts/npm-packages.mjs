/** Installs the npm packages: runs `npm ci` when the installed packages differ from package-lock.json. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { progress } from './step.mjs';

const readPackages = (path) => JSON.parse(readFileSync(path, 'utf8')).packages;

/**
 * npm keeps its own list of the packages that it installed. Packages for other platforms are only in the lock
 * file.
 */
function upToDate() {
  const installedList = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedList)) return false;
  const installed = readPackages(installedList);
  return Object.entries(readPackages(join(root, 'package-lock.json'))).every(([path, wanted]) => {
    if (path === '') return true;
    const found = installed[path];
    if (found === undefined) return wanted.optional === true;
    return found.version === wanted.version && found.integrity === wanted.integrity;
  });
}

/** Resolves to whether a package was installed. */
export async function installNpmPackages() {
  if (upToDate()) return false;
  await progress('npm packages', () => run(['npm', 'ci', '--no-audit', '--no-fund']));
  return true;
}
