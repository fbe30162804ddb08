/** What the reports of test programs come to: passed, failed, and not run with the reason. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';

interface Report {
  passed: number;
  failed: number;
  failures: string[];
  notRun: Map<string, number>;
  note?: string;
}

const script = (name: string) => import(new URL(`../../scripts/${name}`, import.meta.url).href);
const { readReport } = (await script('ctest-report.mjs')) as { readReport: (xml: string) => Report };
const { readGtest, failuresOf } = (await script('gtest-report.mjs')) as {
  readGtest: (output: string) => Report;
  failuresOf: (output: string) => string;
};
const { readVitest } = (await script('vitest-report.mjs')) as {
  readVitest: (path: string, error: string) => { failures: string[] };
};

const folder = mkdtempSync(join(tmpdir(), 'reports-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('CTest: a test that skipped itself is not run, with its reason', () => {
  const line = (name: string, status: string, output: string) =>
    `<testcase name="${name}" classname="${name}" time="0.1" status="${status}"><system-out>${output}</system-out></testcase>`;
  const skipped = 'a_test.cc:3: Skipped\nnot run: no &quot;windows&quot; &amp; such\n';
  const report = readReport(
    [
      line('A', 'run', ''),
      line('B', 'fail', 'why'),
      line('C', 'notrun', skipped),
      line('D', 'notrun', skipped),
    ].join('\n'),
  );
  expect(report).toEqual({
    passed: 1,
    failed: 1,
    failures: ['B'],
    notRun: new Map([['no "windows" & such', 2]]),
  });
});

describe('GoogleTest', () => {
  const begin = (count: number) => `[==========] Running ${count} tests from 1 test suite.\n`;
  const run = (name: string) => `[ RUN      ] ${name}\n`;
  const ok = (name: string) => `${run(name)}[       OK ] ${name} (3 ms)\n`;
  const skipped = (name: string, why: string) =>
    `${run(name)}a_test.cc:7: Skipped\n${why}\n\n[  SKIPPED ] ${name} (0 ms)\n`;
  const failed = (name: string) =>
    `${run(name)}a_test.cc:3: Failure\n${name} is wrong\n[  FAILED  ] ${name}, where GetParam() = 8 (1 ms)\n`;
  const end =
    '[==========] 3 tests ran.\n[  PASSED  ] 1 test.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.Two\n';

  test('each test counts once, whatever the summary repeats', () => {
    const output =
      begin(3) + ok('A.One/x') + failed('A.Two') + skipped('A.Three', 'not run: no windows') + end;
    expect(readGtest(output)).toEqual({
      passed: 1,
      failed: 1,
      failures: ['A.Two'],
      notRun: new Map([['no windows', 1]]),
      note: '',
    });
    expect(failuresOf(output)).toContain('A.Two is wrong');
    expect(failuresOf(output)).not.toMatch(/A\.(One|Three)/);
  });

  test('a test that took the program down has failed, and those after it were not run', () => {
    const output = `${begin(5) + ok('A.One') + run('A.Two')}terminated\n`;
    expect(readGtest(output)).toEqual({
      passed: 1,
      failed: 1,
      failures: ['A.Two'],
      notRun: new Map([['A.Two did not end', 3]]),
      note: 'A.Two did not end',
    });
    expect(failuresOf(output)).toContain('terminated');
  });

  test('what a test prints before its last line does not hide that line', () => {
    expect(readGtest(`${begin(1) + run('A.One')}text[       OK ] A.One (1 ms)\n`).passed).toBe(1);
  });

  test('a program that ends between two tests has not run the rest', () => {
    expect(readGtest(begin(2) + ok('A.One')).notRun).toEqual(new Map([['the program ended before them', 1]]));
  });
});

test('vitest: failed tests and files that do not load are named, with the first line of the reason', () => {
  const passed = { fullName: 'adds', status: 'passed', failureMessages: [] };
  const failed = {
    fullName: 'a > divides',
    status: 'failed',
    failureMessages: ['AssertionError: 1\n    at x'],
  };
  const file = (name: string, status: string, message: string, assertionResults: unknown[]) => ({
    ...{ name: join(folder, name), status, message, assertionResults },
  });
  const report = join(folder, 'vitest.json');
  const testResults = [
    file('a.test.ts', 'failed', '', [passed, failed]),
    file('b.test.ts', 'failed', 'no such module\nsomewhere', []),
  ];
  const counts = { numPassedTests: 1, numFailedTests: 1, numPendingTests: 0, numTodoTests: 0 };
  writeFileSync(report, JSON.stringify({ ...counts, testResults }));
  const { failures } = readVitest(report, 'ended with 1');
  expect(failures).toEqual([
    expect.stringMatching(/a\.test\.ts: a > divides: AssertionError: 1$/),
    expect.stringMatching(/b\.test\.ts: no such module$/),
  ]);
});
