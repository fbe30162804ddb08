/**
 * The package as it was at another commit, built beside this one in build/against, with this build's
 * benchmark in it, so that only the package differs. Used by scripts/bench.mjs.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { progress } from './step.mjs';

const benchmark = join(root, 'dist', 'bench');
/** Belongs to the package for which it is generated. */
const generated = join(benchmark, 'gen');

async function build(tree, commit) {
  rmSync(tree, { recursive: true, force: true });
  mkdirSync(tree, { recursive: true });
  await run(['sh', '-c', 'git archive "$1" | tar -x -C "$2"', 'sh', commit, tree]);
  const lock = 'package-lock.json';
  // With the same packages nothing has to be installed.
  if (readFileSync(join(root, lock), 'utf8') === readFileSync(join(tree, lock), 'utf8'))
    symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  await run([process.execPath, 'scripts/setup.mjs'], { cwd: tree });
  writeFileSync(join(tree, 'built'), commit);
}

/**
 * Builds the commit that `ref` names, unless it is built already. Resolves to its directory; rejects for a
 * ref that git does not know.
 */
export async function buildOf(ref) {
  const found = await run(['git', 'rev-parse', '--verify', '--end-of-options', `${ref}^{commit}`]);
  const commit = found.trim();
  const tree = join(root, 'build', 'against', commit);
  if (!existsSync(join(tree, 'built'))) await progress(`the package of ${ref}`, () => build(tree, commit));
  const into = join(tree, 'dist', 'bench');
  cpSync(benchmark, into, { recursive: true, filter: (from) => from !== generated });
  return tree;
}
