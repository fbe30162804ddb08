/**
 * What counts as a catch of a planted bug: an assertion of the named test that fails, and neither a dead
 * worker nor a time limit.
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
  ['an assertion', [failed(assertion)], /^$/],
  ['an assertion in one of several', [passed, failed(assertion), failed(limit)], /^$/],
  ['none that failed', [passed, passed], /^escaped a test$/],
  ['a time limit', [failed(limit)], /^hangs in a test, which is no catch/],
  ['a time limit of a hook', [passed, failed(hook)], /^hangs in a test, which is no catch/],
  ['a process that ends', [failed(exit)], /^ends the process of a test, which is no catch/],
  ['nothing at all', [], /^a test did not end, which is no catch.*vitest ended with SIGTERM$/],
  ['tests that were not run', [skipped], /^a test did not end, which is no catch/],
])('%s', (_, tests, expected) => {
  expect(verdict(tests, 'a test', 'vitest ended with SIGTERM')).toMatch(expected);
});
