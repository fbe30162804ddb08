/**
 * Runs one vitest test with one source of runtime/ or codegen/ changed. This class writes no file:
 * vitest.config.ts changes the text when the test loads the source. main.mjs uses the class.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CommandFailed, excerpt, run } from '../../scripts/command.mjs';
import { unfit } from './native.mjs';

const config = 'test/planted/vitest.config.ts';
const folders = ['runtime', 'codegen'];

export class TypeScript {
  /**
   * `root` is the project, `scratch` a directory for reports, and `limitMs` the time limit of one vitest run.
   */
  constructor(root, scratch, limitMs) {
    this.root = root;
    this.scratch = scratch;
    this.limitMs = limitMs;
    // Tests that are missing or that fail without a bug, each with how vitest ended.
    this.failing = new Map();
    this.sources = folders.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => join(root, folder, file)),
    );
  }

  /**
   * Runs the tests without a bug. A bug whose test is missing or fails without the bug counts as not found
   * (see `outcome`). The other bugs are still planted.
   */
  async control(bugs) {
    const files = [...new Set(bugs.map(({ caughtBy: [file] }) => file))];
    const names = [...new Set(bugs.map(({ caughtBy: [, name] }) => name))];
    const { tests, ending } = await this.#vitest(files, names, undefined, 'control');
    const passed = ([file, name]) =>
      tests.some((each) => each.file === file && each.name === name && each.status === 'passed');
    for (const { caughtBy } of bugs) {
      if (!passed(caughtBy)) this.failing.set(caughtBy.join(' '), ending);
    }
  }

  /**
   * Returns the reason why a bug counts as not found, or "" when an assertion of the named test has failed.
   */
  async outcome(bug, number) {
    const path = this.#place(bug);
    if (typeof path !== 'string') return path.why;
    const [file, name] = bug.caughtBy;
    const endingWithout = this.failing.get(bug.caughtBy.join(' '));
    if (endingWithout !== undefined) {
      return `${bug.caughtBy.join(' ')} is not there or fails without a bug; ${endingWithout}`;
    }
    const planted = { path, from: bug.from, to: bug.to };
    const { tests, ending } = await this.#vitest([file], [name], planted, String(number));
    return verdict(
      tests.filter((each) => each.name === name),
      bug.caughtBy.join(' '),
      ending,
    );
  }

  /** Returns the reason why a bug no longer fits, or "" when its text occurs once in its file. */
  whyUnfit(bug) {
    const place = this.#place(bug);
    return typeof place === 'string' ? '' : place.why;
  }

  /** Returns the one file with the bug's name, in any folder, that contains the bug's text once. */
  #place({ name, file, from }) {
    const found = this.sources
      .filter((path) => basename(path) === file)
      .map((path) => ({ path, times: readFileSync(path, 'utf8').split(from).length - 1 }))
      .filter(({ times }) => times > 0);
    if (found.length === 1 && found[0].times === 1) return found[0].path;
    const times = found.reduce((sum, each) => sum + each.times, 0);
    return { why: unfit(name, times, `files called ${file}`) };
  }

  /**
   * Resolves to the `tests` that ran (file, name, status and failures of each) and to how vitest ended, with
   * its output (`ending`).
   */
  async #vitest(files, names, planted, report) {
    mkdirSync(this.scratch, { recursive: true });
    const output = join(this.scratch, `${report}.json`);
    rmSync(output, { force: true });
    const escaped = names.map((name) => name.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
    const only = ['-t', `(${escaped.join('|')})$`];
    const vitest = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', '--config', config];
    const flags = ['--root', '.', '--reporter=json', `--outputFile=${output}`, ...only];
    // The run without a bug may take as long as several runs with a bug.
    const limitMs = planted === undefined ? 4 * this.limitMs : this.limitMs;
    const env = {
      RDMA_RPC_EXTENT: 'all', // A bug may show only in few of the random runs.
      ...(planted !== undefined && { RDMA_RPC_PLANTED: JSON.stringify(planted) }),
    };
    let ending = 'vitest ended with 0';
    try {
      await run([...vitest, ...flags, ...files], { cwd: this.root, env, limitMs, group: true });
    } catch (error) {
      // The report contains the failures.
      if (!(error instanceof CommandFailed)) throw error;
      ending = `vitest ended with ${error.code}: ${excerpt(error.output)}`;
    }
    const { testResults } = existsSync(output)
      ? JSON.parse(readFileSync(output, 'utf8'))
      : { testResults: [] };
    const tests = testResults.flatMap(({ name: path, assertionResults }) =>
      assertionResults.map(({ title, status, failureMessages }) => ({
        file: path.slice(this.root.length + 1),
        name: title,
        status,
        failures: failureMessages,
      })),
    );
    return { tests, ending };
  }
}

/** Failures that end a test and that no assertion explains. */
const isTimeLimit = (text) => /(?:Test|Hook) timed out in/.test(text);
const isExit = (text) => text.includes('process.exit unexpectedly called');

/**
 * Returns the reason why the runs of the named test do not count as finding the bug, or "" when an assertion
 * has failed. `tests` is empty, or has no test that passed or failed, in three cases: the worker died, the
 * file could not be loaded, or vitest was ended because all tests hung.
 */
export function verdict(tests, called, ending) {
  const failures = tests.filter(({ status }) => status === 'failed').flatMap((each) => each.failures);
  if (failures.some((text) => !isTimeLimit(text) && !isExit(text))) return '';
  if (failures.some(isExit)) return `ends the process of ${called}, which is no catch`;
  if (failures.length > 0) return `hangs in ${called}, which is no catch: it ran into its time limit`;
  if (tests.some(({ status }) => status === 'passed')) return `escaped ${called}`;
  return `${called} did not end, which is no catch: its worker died, hung or could not load its sources; ${ending}`;
}
