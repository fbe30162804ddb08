/**
 * Finds the addon's binary, which is in this package or, when a bundler has put this code into another file,
 * near the bundle. native.ts calls it once.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { glibcVersion, whyNoAddon, worksWithoutAddon } from './remedy.ts';

const file = 'rdma_rpc.node';
/** The packages that contain this code. */
const packages = ['rdma-rpc', 'rdma-rpc-cli'];
const recipe =
  'this code is in a bundle: leave rdma-rpc out of it ("external"), or copy rdma_rpc.node and rdma_rpc_verbs.so from ' +
  `the package's folder prebuilds/${process.platform}-${process.arch} beside the bundle, or name the copy in RDMA_RPC_ADDON ` +
  '(docs/guides/bundlers-and-runtimes.md)';

/** Returns the path of this file, or of the bundle that contains it. */
function ownFile(): string | undefined {
  // A CommonJS bundle has no import.meta.url. In a webpack bundle it is a path of the build machine.
  const url = import.meta.url as string | undefined;
  if (url?.startsWith('file:') && existsSync(fileURLToPath(url))) return fileURLToPath(url);
  return typeof __filename === 'string' ? __filename : process.argv[1];
}

/**
 * Calls `look` for each folder that contains `path`, beginning with the innermost, and returns the first
 * result.
 */
function upwards(path: string, look: (dir: string) => string | undefined): string | undefined {
  for (let dir = dirname(path); ; dir = dirname(dir)) {
    const found = look(dir);
    if (found !== undefined || dir === dirname(dir)) return found;
  }
}

/** Returns the folder if it is the folder of this package. */
function packageIn(dir: string): string | undefined {
  const manifest = join(dir, 'package.json');
  if (!existsSync(manifest)) return undefined;
  const { name } = JSON.parse(readFileSync(manifest, 'utf8')) as { name?: string };
  return name !== undefined && packages.includes(name) ? dir : undefined;
}

/**
 * Returns the paths to search. A local build comes first, then the binary of a package that was made for this
 * machine, then the package with the binary for this platform, which package managers install beside this
 * package.
 */
function binariesIn(root: string): string[] {
  const platform = `${process.platform}-${process.arch}`;
  const own = [join(root, 'build', 'Release', file), join(root, 'prebuilds', platform, file)];
  try {
    return [...own, createRequire(join(root, 'package.json')).resolve(`@rdma-rpc/${platform}/${file}`)];
  } catch {
    return own;
  }
}

/** Returns the path of the addon that the environment names. `none` means that no addon is to be used. */
export function namedAddon(): string | undefined {
  const named = process.env.RDMA_RPC_ADDON;
  return named === '' ? undefined : named;
}

/** Returns the path of the addon. Throws an error that lists the searched paths and says what to do. */
export function addonPath(): string {
  const named = namedAddon();
  if (named === 'none')
    throw new Error(`rdma-rpc: there is no addon, as RDMA_RPC_ADDON is none; ${worksWithoutAddon}`);
  if (named !== undefined) {
    // The path is made absolute, because dlopen searches the libraries of the system for a bare name.
    if (existsSync(named)) return resolve(named);
    throw new Error(`rdma-rpc: there is no file ${named}, which RDMA_RPC_ADDON names as the addon`);
  }
  const own = ownFile() ?? join(process.cwd(), 'index.js');
  const root = upwards(own, packageIn);
  const places = root === undefined ? [join(dirname(own), file)] : binariesIn(root);
  if (root === undefined) {
    const installed = upwards(own, (dir) => packageIn(join(dir, 'node_modules', 'rdma-rpc')));
    if (installed !== undefined) places.push(...binariesIn(installed));
  }
  const found = places.find((path) => existsSync(path));
  if (found !== undefined) return found;
  const what = `no native addon for ${process.platform}-${process.arch} (looked at ${places.join(', ')})`;
  throw new Error(
    root === undefined
      ? `rdma-rpc: ${what}. If the package has one, ${recipe}`
      : whyNoAddon(what, { glibc: glibcVersion() }),
  );
}
