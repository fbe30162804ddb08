/**
 * Runs the native tests, then vitest's. It prints the tests that failed, the tests that were not run with the
 * reasons, and a sum as its last line. A fifth of the unlimited tests is run (test/extent.ts), and tests that
 * take a minute each are left out (`long` in vitest.config.ts). With RDMA_RPC_EXTENT=all, as in CI, all tests
 * run.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { nativeTests } from './native-tests.mjs';
import { record, summarize } from './results.mjs';
import { readVitest, reporting } from './vitest-report.mjs';

/** The limit is generous, so that the tests are not stopped on a slow or busy machine. */
const LIMIT_MS = 45 * 60_000;

const everything = process.env.RDMA_RPC_EXTENT === 'all';
const projects = everything ? [] : ['--project', 'apart', '--project', 'together'];

async function vitest() {
  const report = join(root, 'build', 'vitest.json');
  rmSync(report, { force: true });
  const command = ['node', 'node_modules/vitest/vitest.mjs', 'run', ...projects, ...reporting(report)];
  const error = await run(command, { live: true, limitMs: LIMIT_MS }).then(
    () => '',
    (failed) => failed.message,
  );
  return record('vitest', readVitest(report, error));
}

const left = everything ? [] : ['tests that take long are left to CI; npm run test:all runs them, too'];
process.exit(summarize([await nativeTests(), await vitest()], left) ? 0 : 1);
