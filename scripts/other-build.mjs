/**
 * Builds the package as it was at another commit, once, beside this build in build/against. The benchmark
 * (bench-against.mjs) and the tests of upgrades (test/upgrade) use this file.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run, which } from './command.mjs';
import { progress } from './step.mjs';

/** If ccache is installed, files that are the same in both commits are compiled only once. */
function compilerEnv(tree) {
  if (process.env.CMAKE_CXX_COMPILER_LAUNCHER !== undefined || which('ccache') === undefined) return {};
  return { CMAKE_CXX_COMPILER_LAUNCHER: 'ccache', CCACHE_BASEDIR: tree, CCACHE_NOHASHDIR: '1' };
}

async function build(tree, commit) {
  rmSync(tree, { recursive: true, force: true });
  mkdirSync(tree, { recursive: true });
  await run(['sh', '-c', 'git archive "$1" | tar -x -C "$2"', 'sh', commit, tree]);
  const lock = 'package-lock.json';
  // If the packages are the same, nothing needs to be installed.
  if (readFileSync(join(root, lock), 'utf8') === readFileSync(join(tree, lock), 'utf8'))
    symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  await run([process.execPath, 'scripts/setup.mjs'], { cwd: tree, env: compilerEnv(tree) });
  writeFileSync(join(tree, 'built'), commit);
}

/** Resolves to the commit that `ref` names. Rejects for a ref that git does not know. */
export async function commitOf(ref) {
  return (await run(['git', 'rev-parse', '--verify', '--end-of-options', `${ref}^{commit}`])).trim();
}

/**
 * Builds the commit that `ref` names, unless it is already built. Resolves to the directory of the build.
 * Rejects for a ref that git does not know.
 */
export async function buildOf(ref) {
  const commit = await commitOf(ref);
  const tree = join(root, 'build', 'against', commit);
  if (!existsSync(join(tree, 'built'))) await progress(`the package of ${ref}`, () => build(tree, commit));
  return tree;
}
