/**
 * Keeps the results of test suites and checks, one file each in build/results, so that the results of several
 * commands can be summed.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './command.mjs';

/** The exit code of a command that cannot run here and has printed the reason, as in CTest and Automake. */
export const NOT_RUN = 77;

/** The tests of the scripts keep their results in a separate folder. */
const folder = process.env.RDMA_RPC_RESULTS ?? join(root, 'build', 'results');

/** The number of slowest tests that are kept for each suite and named in the sum. */
const SLOWEST = 10;

const slowestOf = (timed) => timed.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST);

/**
 * Writes a suite's result, prints it and returns it. `whyNot` has the reasons why all or some tests were not
 * run. `failures` has a line for each test that failed. The sum repeats these lines, because the early part
 * of a log is often cut off. `failedOnce` has a line for each test that counts as passed because it passed
 * when it was run again (repeat.mjs). `timed` has the name and the milliseconds of each test, as far as they
 * are known.
 */
export function record(
  suite,
  { passed = 0, failed = 0, whyNot = [], failures = [], failedOnce = [], note = '', timed = [] },
) {
  const step = process.env.RDMA_RPC_STEP; // the step of check.mjs that recorded this result
  const result = { suite, step, passed, failed, whyNot, failures, failedOnce, note, timed: slowestOf(timed) };
  mkdirSync(folder, { recursive: true });
  // The file is renamed into place, because a step that runs at the same time may be reading the folder, or
  // writing to it.
  const file = join(folder, `${suite.replaceAll(/\W+/g, '-')}.json`);
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, JSON.stringify(result));
  renameSync(unfinished, file);
  console.log([counts(result), ...remarks([result])].join('\n'));
  return result;
}

const counts = ({ suite, passed, failed, note }) =>
  `${suite}: ${passed} passed, ${failed} failed${note === '' ? '' : ` (${note})`}`;

/**
 * Returns the tests that did not run, were repeated or failed, in this order, because people read a log from
 * its end.
 */
function remarks(results) {
  const each = (what, key) =>
    results.flatMap((result) => result[key].map((line) => `${result.suite}: ${what}: ${line}`));
  return [
    ...each('not run', 'whyNot'),
    ...each('failed once, passed in a fresh guest', 'failedOnce'),
    ...results.flatMap(failed),
  ];
}

/**
 * Returns a line for every failure. If a suite could not name some of its failures, the suite is named
 * instead.
 */
function failed({ suite, failed, failures, note }) {
  const unnamed = failed - failures.length;
  return [
    ...failures.map((line) => `${suite}: failed: ${line}`),
    ...(unnamed > 0 ? [`${suite}: failed: ${unnamed} without a name: ${note || 'its output is above'}`] : []),
  ];
}

export function clear() {
  rmSync(folder, { recursive: true, force: true });
}

/** Returns all results that were recorded since the last clear(). */
export function recorded() {
  mkdirSync(folder, { recursive: true });
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort();
  return files.map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')));
}

/**
 * Returns the sum of `results` as text: the result of each, the slowest tests, the tests that did not run,
 * were repeated or failed, the lines of `more`, and the sum as the last line.
 */
export function summary(results, more = []) {
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  const timed = results.flatMap(({ suite, timed }) =>
    timed.map(({ name, ms }) => ({ name: `${suite}: ${name}`, ms })),
  );
  const slowest = slowestOf(timed).map(({ name, ms }) => `${(ms / 1000).toFixed(1)} s: ${name}`);
  return [
    ...results.map(counts),
    ...(slowest.length === 0 ? [] : ['the slowest tests:', ...slowest]),
    ...remarks(results),
    ...more,
    `${sum('passed')} passed, ${sum('failed')} failed`,
  ].join('\n');
}

/**
 * Prints the summary of `results` with the lines of `more` in it. Returns true when at least one test ran and
 * none failed.
 */
export function summarize(results, more) {
  console.log(`\n${summary(results, more)}`);
  return results.every(({ failed }) => failed === 0) && results.some(({ passed }) => passed > 0);
}

/**
 * Returns the reason that a command gives for not running, which is the rest of the line after "not run:".
 */
export const reason = (output) => /not run: (.*)/.exec(output)?.[1] ?? 'no reason given';
