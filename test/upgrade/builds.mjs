/**
 * Makes the two builds that the tests of upgrades run against each other: today's build, and the baseline.
 * The baseline is the newest release (the last tag `v…` before this commit). Before the first release, it is
 * the commit in baseline.json.
 *
 * To move the baseline, the hash of a newer commit of main is written into baseline.json. This is done when
 * the suite should cover later features of main (a feature bit, a new layout version). A release needs no
 * build.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from '../../scripts/command.mjs';
import { buildOf, commitOf } from '../../scripts/other-build.mjs';

const here = join(root, 'test/upgrade');
const tags = ['git', 'tag', '--list', 'v[0-9]*', '--merged', 'HEAD', '--sort=-version:refname'];

/** Returns the ref of the baseline. */
async function baseline() {
  const today = await commitOf('HEAD');
  for (const tag of (await run(tags)).split('\n').filter((line) => line !== ''))
    if ((await commitOf(tag)) !== today) return tag;
  return JSON.parse(readFileSync(join(here, 'baseline.json'), 'utf8')).commit;
}

/**
 * Puts the programs of this folder into a build, with code that the build's own generator makes. A build
 * whose commit contains the programs runs its own, because they use the names of its API.
 */
async function prepare(name, tree) {
  const programs = join(tree, 'build/upgrade');
  const own = join(tree, 'test/upgrade');
  rmSync(programs, { recursive: true, force: true });
  mkdirSync(programs, { recursive: true });
  for (const file of ['server.mjs', 'client.mjs', 'load.mjs', 'upgrade.proto'])
    cpSync(join(existsSync(own) ? own : here, file), join(programs, file));
  const generator = join(tree, 'dist/bundle/cli.js');
  const flags = ['--out', 'gen', '--include', '.', '--target', 'js', '--import-extension', 'js'];
  await run([process.execPath, generator, 'gen', ...flags, 'upgrade.proto'], { cwd: programs });
  return { name, program: (file) => join(programs, file), tree };
}

/** Resolves to both builds, or to the reason why the baseline is not available. */
export async function builds() {
  let ref;
  try {
    ref = await baseline();
    await commitOf(ref);
  } catch (error) {
    if (ref === undefined) return `this is no git repository: ${error.message}`;
    return `this clone does not have the commit ${ref} (a shallow clone?): git fetch --unshallow --tags`;
  }
  const older = await buildOf(ref);
  return { today: await prepare('today', root), before: await prepare(ref.slice(0, 12), older) };
}
