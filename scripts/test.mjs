/**
 * Native tests, then vitest's. Prints what failed, what was not run and why, and a sum as its last line. A
 * fifth of what has no end is tried (test/extent.ts), and what takes a minute for a handful of tests is left
 * out (`long` in vitest.config.ts): with RDMA_RPC_EXTENT=all, as CI has it, nothing is.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { nativeTests } from './native-tests.mjs';
import { record, summarize } from './results.mjs';
import { readVitest, reporting } from './vitest-report.mjs';

/** A slow or busy machine is no reason to end them. */
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
