/**
 * The package as it was at another commit, with this build's benchmark in it, so that only the package
 * differs. scripts/bench.mjs uses this file.
 */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './command.mjs';
import * as other from './other-build.mjs';

const benchmark = join(root, 'dist', 'bench');
/** The generated code belongs to the package for which it is generated. */
const generated = join(benchmark, 'gen');

/** Does the same as other-build.mjs, and adds the benchmark. */
export async function buildOf(ref) {
  const tree = await other.buildOf(ref);
  const into = join(tree, 'dist', 'bench');
  cpSync(benchmark, into, { recursive: true, filter: (from) => from !== generated });
  return tree;
}
