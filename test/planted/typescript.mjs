/**
 * Runs one test of vitest with one source of runtime/ or codegen/ changed. Nothing is written: the change is
 * made when the test loads the file (vitest.config.ts). For main.mjs.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CommandFailed, excerpt, run } from '../../scripts/command.mjs';
import { unfit } from './native.mjs';

const config = 'test/planted/vitest.config.ts';
const folders = ['runtime', 'codegen'];

export class TypeScript {
  /** `root`: the project; `scratch`: for reports; `limitMs`: for one run of vitest. */
  constructor(root, scratch, limitMs) {
    this.root = root;
    this.scratch = scratch;
    this.limitMs = limitMs;
    this.failing = new Map(); // from a test that is not there or fails without a bug to how vitest ended
    this.sources = folders.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => join(root, folder, file)),
    );
  }

  /**
   * Runs the tests without a bug. A bug whose test is not there, or fails already now, counts as not found
   * (`outcome`); the others are planted all the same.
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

  /** Why a bug does not count as found; empty when it does: an assertion of the named test has failed. */
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

  /** Why a bug no longer fits; empty: its text is once in its file. */
  whyUnfit(bug) {
    const place = this.#place(bug);
    return typeof place === 'string' ? '' : place.why;
  }

  /** The one file of this name, in whichever folder it lies, that has the bug's text once. */
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
   * `tests`: file, name, status and failures of each; `ending`: how vitest ended, and what it printed.
   */
  async #vitest(files, names, planted, report) {
    mkdirSync(this.scratch, { recursive: true });
    const output = join(this.scratch, `${report}.json`);
    rmSync(output, { force: true });
    const escaped = names.map((name) => name.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
    const only = ['-t', `(${escaped.join('|')})$`];
    const vitest = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', '--config', config];
    const flags = ['--root', '.', '--reporter=json', `--outputFile=${output}`, ...only];
    // A run for each bug has its limit; the one without a bug has as long as some of them.
    const limitMs = planted === undefined ? 4 * this.limitMs : this.limitMs;
    const env = {
      RDMA_RPC_EXTENT: 'all', // a bug may show itself in few of the random runs
      ...(planted !== undefined && { RDMA_RPC_PLANTED: JSON.stringify(planted) }),
    };
    let ending = 'vitest ended with 0';
    try {
      await run([...vitest, ...flags, ...files], { cwd: this.root, env, limitMs, group: true });
    } catch (error) {
      // Failures are in the report.
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

/** What ends a test without an assertion that says what is wrong. */
const isTimeLimit = (text) => /(?:Test|Hook) timed out in/.test(text);
const isExit = (text) => text.includes('process.exit unexpectedly called');

/**
 * What the runs of the named test say of a bug; empty when an assertion has failed. `tests` is empty, or has
 * none that passed or failed, when the worker has died, the file could not be loaded, or everything hung
 * until vitest was ended.
 */
export function verdict(tests, called, ending) {
  const failures = tests.filter(({ status }) => status === 'failed').flatMap((each) => each.failures);
  if (failures.some((text) => !isTimeLimit(text) && !isExit(text))) return '';
  if (failures.some(isExit)) return `ends the process of ${called}, which is no catch`;
  if (failures.length > 0) return `hangs in ${called}, which is no catch: it ran into its time limit`;
  if (tests.some(({ status }) => status === 'passed')) return `escaped ${called}`;
  return `${called} did not end, which is no catch: its worker died, hung or could not load its sources; ${ending}`;
}
