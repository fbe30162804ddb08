/** Reads the JSON file that vitest writes. */
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { root } from './command.mjs';

const firstLine = (message) => (message ?? '').split('\n', 1)[0];

/** A line for each test that failed, and for each file that did not load. */
function failuresOf({ name, message, status, assertionResults }) {
  const file = relative(root, name);
  const failed = assertionResults.filter((test) => test.status === 'failed');
  if (failed.length === 0) return status === 'failed' ? [`${file}: ${firstLine(message)}`] : [];
  return failed.map((test) => `${file}: ${test.fullName}: ${firstLine(test.failureMessages[0])}`);
}

/** What a run came to, for `record`. `error`: why the command failed, '' when it did not. */
export function readVitest(path, error) {
  if (!existsSync(path)) return { failed: 1, note: error || `vitest wrote no ${path}` };
  const counts = JSON.parse(readFileSync(path, 'utf8'));
  const passed = counts.numPassedTests;
  const skipped = counts.numPendingTests + counts.numTodoTests;
  const whyNot = skipped === 0 ? [] : [`${skipped} tests, marked above`];
  // A file that does not load, or an error outside of any test, fails the run without a failed test.
  const failed = error !== '' && counts.numFailedTests === 0 ? 1 : counts.numFailedTests;
  const failures = counts.testResults.flatMap(failuresOf);
  return { passed, failed, whyNot, failures, note: failed > counts.numFailedTests ? error : '' };
}
