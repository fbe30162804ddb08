/** All tests: native ones, then vitest's. Prints what failed, what was not run and why, and a sum as its last line. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { nativeTests } from './native-tests.mjs';
import { record, summarize } from './results.mjs';
import { readVitest, reporting } from './vitest-report.mjs';

/** Four minutes on an idle machine with two cores; a slow or busy one is no reason to end them. */
const LIMIT_MS = 45 * 60_000;

async function vitest() {
  const report = join(root, 'build', 'vitest.json');
  rmSync(report, { force: true });
  const command = ['node', 'node_modules/vitest/vitest.mjs', 'run', ...reporting(report)];
  const error = await run(command, { live: true, limitMs: LIMIT_MS }).then(
    () => '',
    (failed) => failed.message,
  );
  return record('vitest', readVitest(report, error));
}

process.exit(summarize([await nativeTests(), await vitest()]) ? 0 : 1);
