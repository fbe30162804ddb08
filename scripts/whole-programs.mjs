/**
 * Runs the tests of a build directory that CTest knows, with one process for each program and environment,
 * two at a time. One process for each test would mean three thousand starts, which take as long as the tests
 * themselves, and longer with sanitizers. A test that crashes or hangs has failed; the remaining tests of its
 * program count as not run.
 */
import { basename } from 'node:path';
import { run } from './command.mjs';
import { failuresOf, readGtest } from './gtest-report.mjs';

const WORKERS = 2;
const LIMIT_MS = 20 * 60_000;
/** The argument that gtest_discover_tests adds to the command of each test that it finds in a program. */
const FOUND = '--gtest_also_run_disabled_tests';
/** The longest programs come first, so that no long program runs alone at the end. */
const LONG = ['session_test', 'fabric_test', 'shm_model_test'];

const property = ({ properties = [] }, name) => properties.find((each) => each.name === name)?.value;

/**
 * Returns the programs with their arguments and environments. `skips` is the exit code that means "not run".
 */
async function programs(directory) {
  const { tests } = JSON.parse(await run(['ctest', '--test-dir', directory, '--show-only=json-v1']));
  const all = new Map();
  for (const test of tests) {
    const { command } = test;
    const variables = property(test, 'ENVIRONMENT') ?? [];
    const found = command.includes(FOUND);
    const title = [...variables, basename(command[0]), ...(found ? [] : command.slice(1))].join(' ');
    const env = Object.fromEntries(variables.map((variable) => variable.split('=', 2)));
    const skips = property(test, 'SKIP_RETURN_CODE');
    all.set(title, { title, command: found ? command.slice(0, 1) : command, variables, env, skips });
  }
  const rank = ({ command }) => (LONG.indexOf(basename(command[0])) + LONG.length + 1) % (LONG.length + 1);
  return [...all.values()].sort((a, b) => rank(a) - rank(b));
}

/** Returns the result of one program, and shows its failures. */
async function outcomeOf({ title, command, variables, env, skips }, ofAll) {
  const options = { limitMs: LIMIT_MS, ...ofAll, env: { ...ofAll.env, ...env } };
  const { code, output, message } = await run(command, options).then(
    (output) => ({ code: 0, output, message: '' }),
    ({ code, output, message }) => ({ code, output, message }),
  );
  const seen = readGtest(output);
  // Such a program reports that before it runs any test, and counts as one test.
  if (code === skips && seen.passed + seen.failed === 0)
    return { ...seen, notRun: new Map([[/not run: (.*)/.exec(output)?.[1] ?? title, 1]]) };
  if (seen.failed > 0) console.log(failuresOf(output));
  seen.failures = seen.failures.map((name) => [...variables, name].join(' '));
  const unseen = seen.failed === 0 && (code !== 0 || !seen.ended);
  if (!unseen) return seen;
  console.log(output.slice(-5000));
  return { ...seen, failed: 1, failures: [`${title}: ${message || 'it did not end properly'}`] };
}

/**
 * Resolves to the results. `ofAll` has `env`, for the environment of each program, and `limitMs`, after which
 * a running program has failed. In the results, `failures` has the names of the tests that failed, each after
 * the settings of its program's own environment. `notRun` has the number of tests by reason, and `timed` has
 * the duration of each test.
 */
export async function runPrograms(directory, ofAll = {}) {
  const left = await programs(directory);
  if (left.length === 0) throw new Error(`CTest knows no tests in ${directory}`);
  const report = { passed: 0, failed: 0, failures: [], notRun: new Map(), timed: [] };
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const seen = await outcomeOf(next, ofAll);
      report.passed += seen.passed;
      report.failed += seen.failed;
      report.failures.push(...seen.failures);
      report.timed.push(...seen.timed);
      for (const [why, count] of seen.notRun) report.notRun.set(why, (report.notRun.get(why) ?? 0) + count);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  return report;
}
