/** All tests: native ones, then vitest's. Prints what failed, what was not run and why, and a sum as its last line. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { nativeTests } from './native-tests.mjs';
import { record, summarize } from './results.mjs';
import { readVitest, reporting } from './vitest-report.mjs';

async function vitest() {
  const report = join(root, 'build', 'vitest.json');
  rmSync(report, { force: true });
  const command = ['node', 'node_modules/vitest/vitest.mjs', 'run', ...reporting(report)];
  const error = await run(command, { live: true }).then(
    () => '',
    (failed) => failed.message,
  );
  return record('vitest', readVitest(report, error));
}

process.exit(summarize([await nativeTests(), await vitest()]) ? 0 : 1);
