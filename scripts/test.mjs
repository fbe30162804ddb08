/** All tests: native ones, then vitest's. Prints what failed, what was not run and why, and a sum as its last line. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { nativeTests } from './native-tests.mjs';
import * as results from './results.mjs';

async function vitest() {
  const report = 'build/vitest.json';
  rmSync(join(root, report), { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const ended = await run(['node', 'node_modules/vitest/vitest.mjs', 'run', ...reporters], {
    live: true,
  }).then(
    () => 'well',
    (error) => error.message,
  );
  let counts = { numPassedTests: 0, numFailedTests: 0 };
  try {
    counts = JSON.parse(readFileSync(join(root, report), 'utf8'));
  } catch {
    // No report: vitest did not get as far; counted below.
  }
  const failed = counts.numFailedTests;
  // A file that does not load, or an error outside of any test, fails the run without a failed test.
  const outside = ended !== 'well' && failed === 0;
  results.record('vitest', {
    passed: counts.numPassedTests,
    failed: outside ? 1 : failed,
    note: outside ? ended : undefined,
  });
}

results.clear();
await nativeTests();
await vitest();
process.exit(results.summarize() ? 0 : 1);
