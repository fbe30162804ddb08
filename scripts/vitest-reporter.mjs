/**
 * A reporter of vitest, loaded by it: writes what a run came to where --outputFile says, for
 * vitest-report.mjs. Vitest's own JSON has only the stack of an error, which does not say that a test ran out
 * of time, and not the errors that came outside of any test.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { root } from './command.mjs';

const firstLine = (text) => String(text).split('\n', 1)[0];

/** What failed, of an error as vitest passes it on. */
function why({ name, message }) {
  const text = firstLine(message ?? '');
  return name === undefined || name === 'Error' ? text : `${name}: ${text}`;
}

/**
 * Where vitest was when an error came that is none of a test's: nobody looked at a promise that was rejected,
 * for instance.
 */
function whereabouts({ VITEST_TEST_PATH: path, VITEST_TEST_NAME: test }) {
  const during = [
    ...(path === undefined ? [] : [relative(root, path)]),
    ...(test === undefined ? [] : [test]),
  ];
  return during.length === 0 ? '' : ` (during ${during.join(' > ')})`;
}

/** The names of the suites around a test, and its own. */
function namesOf(task) {
  return task.type === 'module' ? [] : [...namesOf(task.parent), task.name];
}

function failureOf(file, test) {
  return { file, names: namesOf(test), why: why(test.result().errors?.[0] ?? {}) };
}

/**
 * What `--outputFile` is to hold; `skipped` counts tests by the reason that they gave, '' for none; `timed`
 * is how long each that ran took. `modules` and `errors` are vitest's, of onTestRunEnd.
 */
export function summary(modules, errors) {
  const report = {
    passed: 0,
    skipped: {},
    failed: [],
    timed: [],
    broken: errors.map((error) => `no test: ${why(error)}${whereabouts(error)}`),
  };
  for (const module of modules) {
    const file = relative(root, module.moduleId);
    for (const holder of [module, ...module.children.allSuites()]) {
      const where = [file, ...namesOf(holder)].join(' > ');
      report.broken.push(...holder.errors().map((error) => `${where}: ${why(error)}`));
    }
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      const { duration } = test.diagnostic() ?? {};
      if (duration !== undefined)
        report.timed.push({ name: [file, ...namesOf(test)].join(' > '), ms: Math.round(duration) });
      if (state === 'passed') report.passed += 1;
      else if (state === 'failed') report.failed.push(failureOf(file, test));
      else {
        const reason = test.result().note ?? '';
        report.skipped[reason] = (report.skipped[reason] ?? 0) + 1;
      }
    }
  }
  return report;
}

export default class Reporter {
  #path = '';

  onInit(vitest) {
    this.#path = vitest.config.outputFile;
  }

  onTestRunEnd(modules, errors) {
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(this.#path, JSON.stringify(summary(modules, errors)));
  }
}
