/** All tests: native ones, then vitest's. Prints what failed, what was not run and why, and a sum as its last line. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { nativeTests } from './native-tests.mjs';
import { record, summarize } from './results.mjs';

async function vitest() {
  const report = join(root, 'build', 'vitest.json');
  rmSync(report, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', '--outputFile.json=build/vitest.json'];
  const command = ['node', 'node_modules/vitest/vitest.mjs', 'run', ...reporters];
  const note = await run(command, { live: true }).then(
    () => '',
    (error) => error.message,
  );
  if (!existsSync(report)) return record('vitest', { failed: 1, note });
  const counts = JSON.parse(readFileSync(report, 'utf8'));
  const passed = counts.numPassedTests;
  const skipped = counts.numPendingTests + counts.numTodoTests;
  const whyNot = skipped === 0 ? [] : [`${skipped} tests, marked above`];
  // A file that does not load, or an error outside of any test, fails the run without a failed test.
  const failed = note !== '' && counts.numFailedTests === 0 ? 1 : counts.numFailedTests;
  return record('vitest', { passed, failed, whyNot, note: failed > counts.numFailedTests ? note : '' });
}

process.exit(summarize([await nativeTests(), await vitest()]) ? 0 : 1);
