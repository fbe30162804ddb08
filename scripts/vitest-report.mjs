/** Reads the JSON file that vitest writes. */
import { existsSync, readFileSync } from 'node:fs';

/** What a run came to, for `record`. `error`: why the command failed, '' when it did not. */
export function readVitest(path, error) {
  if (!existsSync(path)) return { failed: 1, note: error || `vitest wrote no ${path}` };
  const counts = JSON.parse(readFileSync(path, 'utf8'));
  const passed = counts.numPassedTests;
  const skipped = counts.numPendingTests + counts.numTodoTests;
  const whyNot = skipped === 0 ? [] : [`${skipped} tests, marked above`];
  // A file that does not load, or an error outside of any test, fails the run without a failed test.
  const failed = error !== '' && counts.numFailedTests === 0 ? 1 : counts.numFailedTests;
  return { passed, failed, whyNot, note: failed > counts.numFailedTests ? error : '' };
}
