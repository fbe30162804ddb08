/**
 * Tests the tests. This script plants each bug of the tables beside this file, one at a time. The test that
 * the table names must find it, by an assertion that fails and not by a crash or a time limit. A bug whose
 * text is no longer in the source is a failure, too, because the table must follow the code.
 *
 *   npm run test:planted [-- --only native|typescript] [--sanitize=address,undefined] [WORD ...]
 *
 * With words, it plants only the bugs whose name and test program together contain all of the words: nic_test
 * selects those of native/fabric/verbs. With sanitizers, it plants only the native bugs, in tests that are
 * built with the sanitizers. A sanitizer's report also counts as a failure of this command.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CommandFailed, root, run } from '../../scripts/command.mjs';
import { missing } from '../../scripts/debian.mjs';
import { buildDirectory, configureTests } from '../../scripts/native-tests.mjs';
import { record } from '../../scripts/results.mjs';
import { progress } from '../../scripts/step.mjs';
import { codegenBugs } from './codegen.mjs';
import { controlBugs } from './control.mjs';
import { creditBugs } from './credits.mjs';
import { datagramBugs } from './datagrams.mjs';
import { fabricBugs } from './fabric.mjs';
import { memoryBugs } from './memory.mjs';
import { Native } from './native.mjs';
import { runtimeBugs } from './runtime.mjs';
import { serverBugs } from './server.mjs';
import { sessionBugs } from './session.mjs';
import { shmBugs } from './shm.mjs';
import { TypeScript } from './typescript.mjs';
import { verbsBugs } from './verbs.mjs';

const SUITE = 'planted bugs';
const AT_ONCE = 2;
/** A test takes seconds at most. A bug that makes its test hang counts as not found. */
const LIMIT_MS = 180_000;

const test = (program, filter, env) =>
  run([program, `--gtest_filter=${filter}`, '--gtest_brief=1'], { env, limitMs: LIMIT_MS });

/** Returns the reason why a native bug counts as not found, or "" when it was found. */
async function nativeOutcome(native, bug, number) {
  let program;
  try {
    program = await native.plant(bug, number);
  } catch (error) {
    return error instanceof CommandFailed ? `does not build: ${error.output.slice(0, 2000)}` : error.message;
  }
  try {
    await test(program, bug.caughtBy, bug.env);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    if (/\[ {2}FAILED {2}\]|Sanitizer: |runtime error: /.test(error.output)) return '';
    return `ends with ${error.code} and no test that failed: ${error.output.slice(-2000)}`;
  }
  return `escaped ${bug.caughtBy}`;
}

/** Returns whether a test with a name that matches `filter` has passed. */
function hasPassed(output, filter) {
  const name = filter.split('*').map((part) => part.replace(/[\\^$.+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^\\[ {7}OK \\] ${name.join('.*')}(,| \\()`, 'm').test(output);
}

/** Checks that each named test exists and passes without a bug. */
async function control(native, bugs) {
  for (const name of new Set(bugs.map((bug) => bug.program))) {
    const these = bugs.filter((bug) => bug.program === name);
    for (const sim of new Set(these.map((bug) => bug.env?.RDMA_RPC_SIM))) {
      const filters = [
        ...new Set(these.filter((bug) => bug.env?.RDMA_RPC_SIM === sim).map((bug) => bug.caughtBy)),
      ];
      const output = await run([join(native.build, name), `--gtest_filter=${filters.join(':')}`], {
        env: sim === undefined ? {} : { RDMA_RPC_SIM: sim },
        limitMs: LIMIT_MS,
      });
      const lacking = filters.filter((filter) => !hasPassed(output, filter));
      if (lacking.length > 0) throw new Error(`${name} has no test ${lacking.join(', ')}`);
    }
  }
}

/**
 * Plants each bug. `outcome` gets a bug and its number. `outcome` resolves to the reason why the bug counts
 * as not found, or to "".
 */
async function plantAll(bugs, outcome) {
  const failures = [];
  const left = [...bugs.entries()];
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [number, bug] = next;
      const why = await outcome(bug, number);
      if (why !== '') failures.push(`${bug.name}: ${why}`);
      console.log(`${why === '' ? '✓' : '✗'} ${bug.name}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return failures;
}

/** Plants the bugs of native/. Resolves to a line for each bug that was not found. */
async function plantNative(bugs, sanitize, scratch) {
  const native = new Native(root, join(root, buildDirectory(sanitize)), scratch);
  await progress(`${SUITE}: build`, async () => {
    await configureTests(sanitize);
    await native.prepare(new Set(bugs.map((bug) => bug.program)));
  });
  await progress(`${SUITE}: the native tests without them`, () => control(native, bugs));
  return plantAll(bugs, (bug, number) => nativeOutcome(native, bug, number));
}

/** Plants the bugs of runtime/ and codegen/. */
async function plantTypeScript(bugs, scratch) {
  const typescript = new TypeScript(root, scratch, LIMIT_MS);
  await progress(`${SUITE}: the tests in TypeScript without them`, () => typescript.control(bugs));
  return plantAll(bugs, (bug, number) => typescript.outcome(bug, number));
}

async function main() {
  const { values, positionals: words } = parseArgs({
    options: { only: { type: 'string' }, sanitize: { type: 'string', default: '' } },
    allowPositionals: true,
  });
  const { only, sanitize } = values;
  if (![undefined, 'native', 'typescript'].includes(only)) {
    throw new Error(`--only takes native or typescript, not ${only}`);
  }
  const wanted = (bugs) =>
    bugs.filter(({ name, program = '' }) => words.every((word) => `${name} ${program}`.includes(word)));
  const lacking = only === 'typescript' ? [] : [...missing('build'), ...missing('tests')];
  const inNative =
    only === 'typescript' || lacking.length > 0
      ? []
      : wanted([
          ...shmBugs,
          ...fabricBugs,
          ...verbsBugs,
          ...datagramBugs,
          ...memoryBugs,
          ...sessionBugs,
          ...creditBugs,
        ]);
  const inTypeScript =
    only === 'native' || sanitize !== ''
      ? []
      : wanted([...runtimeBugs, ...controlBugs, ...serverBugs, ...codegenBugs]);
  const whyNot =
    lacking.length > 0 ? [`those of native/: missing Debian packages: ${lacking.join(', ')}`] : [];
  const scratch = join(root, 'build', 'planted');
  rmSync(scratch, { recursive: true, force: true });
  const failures = [];
  try {
    if (inNative.length > 0) failures.push(...(await plantNative(inNative, sanitize, scratch)));
    if (inTypeScript.length > 0) failures.push(...(await plantTypeScript(inTypeScript, scratch)));
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return record(SUITE, { failed: 1, note: 'the tests do not pass without them' });
  }
  rmSync(scratch, { recursive: true, force: true });
  const passed = inNative.length + inTypeScript.length - failures.length;
  return record(SUITE, { passed, failed: failures.length, failures, whyNot });
}

process.exit((await main()).failed === 0 ? 0 : 1);
