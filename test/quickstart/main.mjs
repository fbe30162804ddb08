/**
 * Tests docs/start/quick-start.md from the packed tarball, with every Node, package manager and tool that it
 * names (test/quickstart). The packages that the test needs are first installed into build/quickstart.
 * Without a registry, the script does not run the test.
 *
 *   node test/quickstart/main.mjs [TEST NAMES]      as vitest's -t
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from '../../scripts/command.mjs';
import { installTools, TOOLS } from '../../scripts/quickstart-tools.mjs';
import { NOT_RUN, record } from '../../scripts/results.mjs';
import { readVitest, reporting } from '../../scripts/vitest-report.mjs';

const SUITE = 'quick start';

const why = await installTools(SUITE);
if (why !== '') {
  record(SUITE, { whyNot: [why] });
  process.exit(NOT_RUN);
}
const report = join(root, 'build', 'quickstart.json');
rmSync(report, { force: true });
const names = process.argv.length > 2 ? ['-t', process.argv.slice(2).join(' ')] : [];
const vitest = [
  'node',
  'node_modules/vitest/vitest.mjs',
  'run',
  '--config',
  'test/quickstart/vitest.config.ts',
];
const error = await run([...vitest, ...names, ...reporting(report)], {
  live: true,
  env: { RDMA_RPC_QUICKSTART: TOOLS },
}).then(
  () => '',
  (failed) => failed.message,
);
process.exit(record(SUITE, readVitest(report, error)).failed === 0 ? 0 : 1);
