/**
 * Tests that a planted bug counts as found when an assertion of the named test fails, not when its worker
 * dies or a time limit ends it.
 */
import { expect, test } from 'vitest';

interface Ran {
  readonly status: string;
  readonly failures: readonly string[];
}
const { verdict } = (await import(new URL('../planted/typescript.mjs', import.meta.url).href)) as {
  readonly verdict: (tests: readonly Ran[], called: string, ending: string) => string;
};

const passed = { status: 'passed', failures: [] };
const skipped = { status: 'skipped', failures: [] };
const failed = (...failures: string[]) => ({ status: 'failed', failures });
const assertion = 'AssertionError: expected 1 to be 2';
const limit = 'Error: Test timed out in 30000ms.';
const hook = 'Error: Hook timed out in 30000ms.';
const exit = 'Error: process.exit unexpectedly called with "0"';

test.each<[string, Ran[], RegExp]>([
  ['an assertion fails', [failed(assertion)], /^$/],
  ['an assertion fails in one of several runs', [passed, failed(assertion), failed(limit)], /^$/],
  ['no test fails', [passed, passed], /^escaped a test$/],
  ['a test runs into its time limit', [failed(limit)], /^hangs in a test, which is no catch/],
  ['a hook runs into its time limit', [passed, failed(hook)], /^hangs in a test, which is no catch/],
  ['the process ends', [failed(exit)], /^ends the process of a test, which is no catch/],
  ['vitest reports no test', [], /^a test did not end, which is no catch.*vitest ended with SIGTERM$/],
  ['the tests were not run', [skipped], /^a test did not end, which is no catch/],
])('the verdict when %s', (_, tests, expected) => {
  expect(verdict(tests, 'a test', 'vitest ended with SIGTERM')).toMatch(expected);
});
