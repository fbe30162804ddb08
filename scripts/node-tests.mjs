/**
 * Runs the vitest suite on the Node versions that users run. The main version runs the complete suite, and
 * the other versions run the folders that depend on Node's behaviour. Each Node comes from npm
 * (quickstart-tools.mjs). The addon, the generated code and dist are those that setup has built. One addon
 * fits all versions, because it uses Node-API.
 *
 *   node scripts/node-tests.mjs [--node MAJOR | --except MAJOR] [--project NAME] [FOLDER ...]
 *
 * Without --node, all versions run except one on which npm test has already run: the version of --except, or
 * this machine's version. --project runs only the tests of that project of vitest.config.ts. With FOLDERs,
 * only these run, on each version.
 */
import { rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, run } from './command.mjs';
import { installTools, MAIN_NODE, nodeFolder, nodeVersions } from './quickstart-tools.mjs';
import { NOT_RUN, record, summarize } from './results.mjs';
import { readVitest, reporting } from './vitest-report.mjs';

/**
 * The folders that depend on Node itself: its event loop, its buffers and sockets, its workers, its ways to
 * exit.
 */
const ON_OTHERS = [
  ...['boundary', 'channel', 'client', 'control', 'core', 'ends', 'native', 'runtime', 'server'],
  ...['services', 'stream', 'tcp'],
].map((name) => `test/${name}`);
const LIMIT_MS = 45 * 60_000;

const {
  values: { project, ...values },
  positionals,
} = parseArgs({
  options: { node: { type: 'string' }, except: { type: 'string' }, project: { type: 'string' } },
  allowPositionals: true,
});
const here = process.versions.node.split('.', 1)[0];

async function vitest(major) {
  const folders = positionals.length > 0 ? positionals : major === MAIN_NODE ? [] : ON_OTHERS;
  const suite = project === undefined ? `Node ${major}` : `Node ${major}, ${project}`;
  const report = join(root, 'build', `vitest-node-${major}.json`);
  rmSync(report, { force: true });
  const node = join(nodeFolder(major), 'node');
  // Tests that start `node` by its name also get this version.
  const env = { PATH: `${nodeFolder(major)}${delimiter}${process.env.PATH}` };
  const chosen = project === undefined ? [] : ['--project', project];
  const command = [
    node,
    'node_modules/vitest/vitest.mjs',
    'run',
    ...folders,
    ...chosen,
    ...reporting(report),
  ];
  console.log(`\n${suite}: ${(await run([node, '--version'])).trim()}, ${folders.join(' ') || 'all tests'}`);
  const error = await run(command, { live: true, limitMs: LIMIT_MS, env }).then(
    () => '',
    (failed) => failed.message,
  );
  return record(suite, readVitest(report, error));
}

const versions = nodeVersions();
for (const [option, major] of Object.entries(values)) {
  if (versions.includes(major)) continue;
  console.error(`node-tests: --${option} is one of ${versions.join(', ')}, not '${major}'`);
  process.exit(2);
}
const why = await installTools('Nodes');
if (why !== '') {
  record('Nodes', { whyNot: [why] });
  process.exit(NOT_RUN);
}
// The main version runs first, in case the time ends before all versions have run.
const { node, except = here } = values;
const wanted = versions
  .filter((major) => (node === undefined ? major !== except : major === node))
  .sort((a, b) => (b === MAIN_NODE) - (a === MAIN_NODE));
const recorded = [];
for (const major of wanted) recorded.push(await vitest(major));
process.exit(summarize(recorded) ? 0 : 1);
