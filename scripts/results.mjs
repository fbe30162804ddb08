/**
 * What test suites and checks came to, one file each in build/results, so that several commands can be summed.
 *
 *   node scripts/results.mjs                             prints each and the sum; exit code 1 when anything failed
 *   node scripts/results.mjs --clear
 *   node scripts/results.mjs --check NAME COMMAND ...    runs a command as one check
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';

const folder = join(root, 'build', 'results');

/** Writes a suite's result and prints it. `notRun`: why it could not run, in place of the counts. */
export function record(suite, { passed = 0, failed = 0, notRun, note }) {
  mkdirSync(folder, { recursive: true });
  const file = `${suite.replaceAll(/\W+/g, '-')}.json`;
  writeFileSync(join(folder, file), JSON.stringify({ suite, passed, failed, notRun, note }));
  console.log(line({ suite, passed, failed, notRun, note }));
}

function line({ suite, passed, failed, notRun, note }) {
  if (notRun !== undefined) return `${suite}: not run: ${notRun}`;
  return `${suite}: ${passed} passed, ${failed} failed${note === undefined ? '' : ` (${note})`}`;
}

export function clear() {
  rmSync(folder, { recursive: true, force: true });
}

/** Prints all results and, last, their sum. Returns whether nothing failed and something ran. */
export function summarize() {
  mkdirSync(folder, { recursive: true });
  const results = readdirSync(folder)
    .sort()
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')));
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  console.log(`\n${results.map(line).join('\n')}\n${sum('passed')} passed, ${sum('failed')} failed`);
  return sum('failed') === 0 && sum('passed') > 0;
}

async function check(name, command) {
  console.log(`\n== ${name}: ${command.join(' ')}`);
  try {
    await run(command, { live: true });
    record(name, { passed: 1 });
    return true;
  } catch (error) {
    record(name, { failed: 1, note: error.message });
    return false;
  }
}

if (process.argv[1] === import.meta.filename) {
  const [, , option, name, ...command] = process.argv;
  let ok = true;
  if (option === '--clear') clear();
  else if (option === '--check') ok = await check(name, command);
  else ok = summarize();
  process.exit(ok ? 0 : 1);
}
