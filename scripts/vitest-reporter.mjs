/**
 * A reporter that vitest loads. It writes the result of a run to the file in --outputFile, for
 * vitest-report.mjs. Vitest's own JSON contains only the stack of an error, which does not show that a test
 * timed out. It also lacks errors that occurred outside of any test.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { root } from './command.mjs';

const firstLine = (text) => String(text).split('\n', 1)[0];

/** Returns the essential part of an error that vitest passes on. */
function why({ name, message }) {
  const text = firstLine(message ?? '');
  return name === undefined || name === 'Error' ? text : `${name}: ${text}`;
}

/**
 * Returns the place in vitest at which an error occurred that belongs to no test, for example an unhandled
 * rejection.
 */
function whereabouts({ VITEST_TEST_PATH: path, VITEST_TEST_NAME: test }) {
  const during = [
    ...(path === undefined ? [] : [relative(root, path)]),
    ...(test === undefined ? [] : [test]),
  ];
  return during.length === 0 ? '' : ` (during ${during.join(' > ')})`;
}

/** Returns the names of the suites around a test, and its own name. */
function namesOf(task) {
  return task.type === 'module' ? [] : [...namesOf(task.parent), task.name];
}

function failureOf(file, test) {
  return { file, names: namesOf(test), why: why(test.result().errors?.[0] ?? {}) };
}

/**
 * Returns the contents of `--outputFile`. `skipped` counts tests by the reason that they gave, or '' for no
 * reason; `timed` has the duration of each test that ran. `modules` and `errors` are the arguments that
 * vitest passes to onTestRunEnd.
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
