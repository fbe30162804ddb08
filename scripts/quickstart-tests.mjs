/**
 * The README's five minutes from the packed tarball, with every Node, package manager and tool that it names (test/quickstart), which are
 * installed into build/quickstart first. Without a registry: not run.
 *
 *   node scripts/quickstart-tests.mjs [TEST NAMES]      as vitest's -t
 */
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CommandFailed, root, run } from './command.mjs';
import { NOT_RUN, record } from './results.mjs';
import { progress } from './step.mjs';
import { readVitest, reporting } from './vitest-report.mjs';

const SUITE = 'quick start';
const TOOLS = join(root, 'build', 'quickstart');

/** Empty, or why the tools are not there. */
async function install() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'its Nodes are those of Linux on x64';
  mkdirSync(TOOLS, { recursive: true });
  copyFileSync(join(root, 'test/quickstart/package.json'), join(TOOLS, 'package.json'));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline'];
  try {
    await progress(`${SUITE}: Nodes and tools`, () => run(['npm', 'install', '--prefix', TOOLS, ...flags]));
    return '';
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const line = error.output.split('\n').find((each) => /npm error (?!code)/.test(each));
    return `npm could not install its tools: ${line ?? error.message}`;
  }
}

const why = await install();
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
