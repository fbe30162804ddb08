/**
 * The vitest suite on the Nodes that users run, other than the one of this machine: whole on the main version, and on the
 * others the folders that depend on what a Node does. Each Node comes from npm (quickstart-tools.mjs). The addon, the
 * generated code and dist are the ones that setup has made: Node-API makes one addon fit all of them.
 *
 *   node scripts/node-tests.mjs [--node MAJOR] [FOLDER ...]      without --node: all; FOLDERs: only these, on each
 */
import { rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, run } from './command.mjs';
import { installTools, nodeFolder, nodeVersions } from './quickstart-tools.mjs';
import { NOT_RUN, record, summarize } from './results.mjs';
import { readVitest, reporting } from './vitest-report.mjs';

/** Most users run this one, so everything must pass on it. */
const MAIN = '24';
/** What meets Node itself: its event loop, its buffers and sockets, its workers, its ways to end. */
const ON_OTHERS = ['channel', 'ends', 'native', 'runtime', 'services', 'stream', 'tcp'].map(
  (name) => `test/${name}`,
);
const LIMIT_MS = 45 * 60_000;

const { values, positionals } = parseArgs({
  options: { node: { type: 'string' } },
  allowPositionals: true,
});
const here = process.versions.node.split('.', 1)[0];

async function vitest(major) {
  const folders = positionals.length > 0 ? positionals : major === MAIN ? [] : ON_OTHERS;
  const suite = `Node ${major}`;
  const report = join(root, 'build', `vitest-node-${major}.json`);
  rmSync(report, { force: true });
  const node = join(nodeFolder(major), 'node');
  // Tests that start `node` by its name get this one, too.
  const env = { PATH: `${nodeFolder(major)}${delimiter}${process.env.PATH}` };
  const command = [node, 'node_modules/vitest/vitest.mjs', 'run', ...folders, ...reporting(report)];
  console.log(`\n${suite}: ${(await run([node, '--version'])).trim()}, ${folders.join(' ') || 'all tests'}`);
  const error = await run(command, { live: true, limitMs: LIMIT_MS, env }).then(
    () => '',
    (failed) => failed.message,
  );
  return record(suite, readVitest(report, error));
}

const versions = nodeVersions();
if (values.node !== undefined && !versions.includes(values.node)) {
  console.error(`node-tests: --node is one of ${versions.join(', ')}, not '${values.node}'`);
  process.exit(2);
}
const why = await installTools('Nodes');
if (why !== '') {
  record('Nodes', { whyNot: [why] });
  process.exit(NOT_RUN);
}
// The main version first, in case that the time is over before all have run.
const wanted = versions
  .filter((major) => (values.node === undefined ? major !== here : major === values.node))
  .sort((a, b) => (b === MAIN) - (a === MAIN));
const recorded = [];
for (const major of wanted) recorded.push(await vitest(major));
process.exit(summarize(recorded) ? 0 : 1);
