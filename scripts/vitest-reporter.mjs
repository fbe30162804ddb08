/**
 * A reporter loaded by vitest: writes the result of a run to the file in --outputFile, for vitest-report.mjs.
 * Vitest's own JSON contains only the stack of an error, which does not tell that a test timed out, and not
 * the errors that occurred outside of any test.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { root } from './command.mjs';

const firstLine = (text) => String(text).split('\n', 1)[0];

/** The essential part of an error that vitest passes on. */
function why({ name, message }) {
  const text = firstLine(message ?? '');
  return name === undefined || name === 'Error' ? text : `${name}: ${text}`;
}

/**
 * The place in vitest at which an error occurred that belongs to no test, for example an unhandled rejection.
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
 * The contents of `--outputFile`; `skipped` counts tests by the reason that they gave, '' for none; `timed`
 * is the duration of each test that ran. `modules` and `errors` are vitest's, of onTestRunEnd.
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
