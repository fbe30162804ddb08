/**
 * What test suites and checks came to, one file each in build/results, so that several commands can be summed.
 *
 *   node scripts/results.mjs --clear
 *   node scripts/results.mjs --check NAME COMMAND ...    runs a command as one check
 *   node scripts/results.mjs                             prints each and the sum; exit code 1 when anything failed
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';

/** The exit code of a command that cannot be run here and has printed why, as CTest and Automake have it. */
export const NOT_RUN = 77;

const folder = join(root, 'build', 'results');

/**
 * Writes a suite's result, prints and returns it. `whyNot`: reasons why all of it or some tests were not run. `failures`: a line for each
 * test that failed, repeated in the sum, since what is far above it is often cut from a log. `failedOnce`: one for each that counts as passed
 * since it did when it was run again (repeat.mjs).
 */
export function record(
  suite,
  { passed = 0, failed = 0, whyNot = [], failures = [], failedOnce = [], note = '' },
) {
  const result = { suite, passed, failed, whyNot, failures, failedOnce, note };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${suite.replaceAll(/\W+/g, '-')}.json`), JSON.stringify(result));
  console.log(lines(result));
  return result;
}

function lines({ suite, passed, failed, whyNot, failures, failedOnce = [], note }) {
  const counts = `${suite}: ${passed} passed, ${failed} failed${note === '' ? '' : ` (${note})`}`;
  const each = (what, list) => list.map((line) => `${suite}: ${what}: ${line}`);
  const once = each('failed once, passed in a fresh guest', failedOnce);
  return [counts, ...each('failed', failures), ...once, ...each('not run', whyNot)].join('\n');
}

export function clear() {
  rmSync(folder, { recursive: true, force: true });
}

/** All that have been recorded since the last clear(). */
export function recorded() {
  mkdirSync(folder, { recursive: true });
  const files = readdirSync(folder).sort();
  return files.map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')));
}

/** Prints `results` and, last, their sum. Returns whether nothing failed and something ran. */
export function summarize(results) {
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  console.log(`\n${results.map(lines).join('\n')}\n${sum('passed')} passed, ${sum('failed')} failed`);
  return sum('failed') === 0 && sum('passed') > 0;
}

/** What a command gives as its reason for not running: the rest of the line after "not run:". */
export const reason = (output) => /not run: (.*)/.exec(output)?.[1] ?? 'no reason given';

async function check(name, command) {
  console.log(`\n== ${name}: ${command.join(' ')}`);
  try {
    await run(command, { live: true });
    return record(name, { passed: 1 });
  } catch (error) {
    if (error.code === NOT_RUN) return record(name, { whyNot: [reason(error.output)] });
    return record(name, { failed: 1, note: error.message });
  }
}

if (process.argv[1] === import.meta.filename) {
  const [, , option, name, ...command] = process.argv;
  let ok = true;
  if (option === '--clear') clear();
  else if (option === '--check') ok = (await check(name, command)).failed === 0;
  else ok = summarize(recorded());
  process.exit(ok ? 0 : 1);
}
