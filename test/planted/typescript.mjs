/**
 * Runs one test of vitest with one source of runtime/ changed. Nothing is written: the change is made when the test loads the file (vitest.config.ts). For
 * main.mjs.
 */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CommandFailed, run } from '../../scripts/command.mjs';

const config = 'test/planted/vitest.config.ts';

export class TypeScript {
  /** `root`: the project; `scratch`: for reports. */
  constructor(root, scratch) {
    this.root = root;
    this.scratch = scratch;
    const files = readdirSync(join(root, 'runtime'), { recursive: true });
    this.sources = files.filter((file) => file.endsWith('.ts')).map((file) => join(root, 'runtime', file));
  }

  /** Without a bug each of the tests passes, and there is one of that name. */
  async control(bugs) {
    const files = [...new Set(bugs.map(({ caughtBy: [file] }) => file))];
    const results = await this.#vitest(files, '', undefined, 'control');
    const lacking = bugs.filter(
      ({ caughtBy: [file, name] }) =>
        !results.some((each) => each.file === file && each.name === name && each.status === 'passed'),
    );
    if (lacking.length === 0) return;
    throw new Error(
      `no test passes that is called ${lacking.map(({ caughtBy }) => caughtBy.join(' ')).join(', ')}`,
    );
  }

  /** Why a bug does not count as found; empty: it does. */
  async outcome(bug, number) {
    const path = this.#place(bug);
    if (typeof path !== 'string') return path.why;
    const [file, name] = bug.caughtBy;
    const results = await this.#vitest([file], name, { path, from: bug.from, to: bug.to }, String(number));
    const failed = results.filter((each) => each.name === name && each.status === 'failed');
    if (failed.length === 0) return `escaped ${bug.caughtBy.join(' ')}`;
    const hung = failed.every(({ text }) => /(?:Test|Hook) timed out in/.test(text));
    return hung ? `hangs in ${bug.caughtBy.join(' ')}` : '';
  }

  /** The one file of this name, in whichever folder of runtime/, that has the bug's text once. */
  #place({ name, file, from }) {
    const found = this.sources
      .filter((path) => basename(path) === file)
      .map((path) => ({ path, times: readFileSync(path, 'utf8').split(from).length - 1 }))
      .filter(({ times }) => times > 0);
    if (found.length === 1 && found[0].times === 1) return found[0].path;
    const times = found.reduce((sum, each) => sum + each.times, 0);
    return {
      why: `"${name}" no longer fits: its text is ${times} times in runtime/**/${file}. Look where the code has gone and change test/planted`,
    };
  }

  /** Name, status and first failure of each test that was run. `name` empty: all of the files. */
  async #vitest(files, name, planted, report) {
    mkdirSync(this.scratch, { recursive: true });
    const output = join(this.scratch, `${report}.json`);
    const only = name === '' ? [] : ['-t', `${name.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`];
    const vitest = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', '--config', config];
    const flags = ['--root', '.', '--reporter=json', `--outputFile=${output}`, ...only];
    const env = planted === undefined ? {} : { RDMA_RPC_PLANTED: JSON.stringify(planted) };
    try {
      await run([...vitest, ...flags, ...files], { cwd: this.root, env });
    } catch (error) {
      // Failures are in the report.
      if (!(error instanceof CommandFailed)) throw error;
    }
    const { testResults } = JSON.parse(readFileSync(output, 'utf8'));
    return testResults.flatMap(({ name: path, message, assertionResults }) =>
      assertionResults.length === 0
        ? [{ file: path.slice(this.root.length + 1), name, status: 'unloaded', text: message }]
        : assertionResults.map(({ title, status, failureMessages }) => ({
            file: path.slice(this.root.length + 1),
            name: title,
            status,
            text: failureMessages.join('\n'),
          })),
    );
  }
}
