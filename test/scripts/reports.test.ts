/**
 * Tests how the reports of test programs are read: how many tests passed and failed, and which were not run
 * and why.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

interface Report {
  passed: number;
  failed: number;
  failures: string[];
  notRun: Map<string, number>;
  note?: string;
  ended?: boolean;
}

const script = (name: string) => import(new URL(`../../scripts/${name}`, import.meta.url).href);
const { readGtest, failuresOf } = (await script('gtest-report.mjs')) as {
  readGtest: (output: string) => Report;
  failuresOf: (output: string) => string;
};
const { readVitest, reporting } = (await script('vitest-report.mjs')) as {
  readVitest: (
    path: string,
    error: string,
  ) => Omit<Report, 'notRun'> & {
    whyNot: string[];
    failedTests: { line: string }[];
    timed: { name: string }[];
  };
  reporting: (path: string) => string[];
};
const root = fileURLToPath(new URL('../..', import.meta.url));

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

  test('each test counts once, even if the summary repeats it', () => {
    const output =
      begin(3) + ok('A.One/x') + failed('A.Two') + skipped('A.Three', 'not run: no windows') + end;
    expect(readGtest(output)).toEqual({
      passed: 1,
      failed: 1,
      failures: ['A.Two'],
      notRun: new Map([['no windows', 1]]),
      note: '',
      ended: true,
      timed: [
        { name: 'A.One/x', ms: 3 },
        { name: 'A.Two', ms: 1 },
        { name: 'A.Three', ms: 0 },
      ],
    });
    expect(failuresOf(output)).toContain('A.Two is wrong');
    expect(failuresOf(output)).not.toMatch(/A\.(One|Three)/);
  });

  test('a test that crashed its program has failed, and later tests were not run', () => {
    const output = `${begin(5) + ok('A.One') + run('A.Two')}terminated\n`;
    expect(readGtest(output)).toEqual({
      passed: 1,
      failed: 1,
      failures: ['A.Two'],
      notRun: new Map([['A.Two did not end', 3]]),
      note: 'A.Two did not end',
      ended: false,
      timed: [{ name: 'A.One', ms: 3 }],
    });
    expect(failuresOf(output)).toContain('terminated');
  });

  test('output of a test before its last line does not hide that line', () => {
    expect(readGtest(`${begin(1) + run('A.One')}text[       OK ] A.One (1 ms)\n`).passed).toBe(1);
  });

  test('a program that ends between two tests has not run the rest', () => {
    const report = readGtest(begin(2) + ok('A.One'));
    expect(report.notRun).toEqual(new Map([['the program ended before them', 1]]));
    expect(report.ended).toBe(false);
  });

  test('a program that does not start has not run to its end', () => {
    expect(readGtest('no such library\n')).toMatchObject({ passed: 0, failed: 0, ended: false });
  });
});

describe('vitest', () => {
  const never = 'async () => { await new Promise(() => undefined); }';
  // Each entry is a file, its contents, and the line of its failure. `no test` means that the entry counts as
  // failed, but not as a test of that name.
  const failing: [string, string, string][] = [
    ['wrong', "test('adds', () => expect(1).toBe(2))", '> adds: AssertionError: expected 1 to be 2 //'],
    [
      'throws',
      String.raw`test('adds', () => { throw new TypeError('one\ntwo'); })`,
      '> adds: TypeError: one',
    ],
    ['text', "test('adds', () => { throw 'text'; })", '> adds: text'],
    ['nested', "describe('a > b', () => { test('c', () => { throw Error('d'); }); })", '> a > b > c: d'],
    ['slow', `test('waits', ${never}, 1)`, '> waits: Test timed out in 1ms.'],
    ['hook', `afterEach(${never}, 1); test('adds', () => {})`, '> adds: Hook timed out in 1ms.'],
  ];
  const noTest: [string, string, string][] = [
    ['import', "import './nothing.js'", 'import.test.js: Cannot find module'],
    [
      'suite',
      "describe('s', () => { beforeAll(() => { throw Error('no'); }); test('t', () => {}); })",
      'suite.test.js > s: no',
    ],
    ['late', "test('t', () => { Promise.reject(Error('too late')); })", 'no test: too late'],
  ];
  const passing = `test('a', () => {}); test.skip('b', () => {}); test.todo('c');
    describe('d', () => {
      beforeEach(({ skip }) => skip(true, 'no protoc'));
      test.each([1, 2])('%d', () => {});
    });`;
  let folder = '';
  let result: ReturnType<typeof readVitest>;

  beforeAll(async () => {
    mkdirSync(join(root, 'build'), { recursive: true });
    folder = mkdtempSync(join(root, 'build', 'reports-test-')); // a folder from which vitest can be imported
    const path = (name: string) => join(folder, name);
    const names = 'afterEach, beforeAll, beforeEach, describe, expect, test';
    for (const [name, text] of [...failing, ...noTest, ['passing', passing]])
      writeFileSync(path(`${name}.test.js`), `import { ${names} } from 'vitest';\n${text}`);
    writeFileSync(path('config.js'), 'export default {};');
    const args = ['run', '--root', folder, '--config', path('config.js'), ...reporting(path('report.json'))];
    const main = join(root, 'node_modules/vitest/vitest.mjs');
    const code = await new Promise((resolve) => {
      execFile(process.execPath, [main, ...args], (error) => resolve(error?.code ?? 0));
    });
    expect(code).toBe(1);
    result = readVitest(path('report.json'), 'ended with 1');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('counts passed, failed and skipped tests of all files, and failures outside of tests', () => {
    const failed = failing.length + noTest.length;
    // Two tests pass: the test of the passing file, and the test whose error came too late to count.
    expect(result).toMatchObject({ passed: 2, failed, ended: true, note: '' });
    expect(result.failures).toHaveLength(failed);
    expect(result.failedTests).toHaveLength(failing.length);
    expect(result.timed.some(({ name }) => name.endsWith('/passing.test.js > a'))).toBe(true);
    expect(result.whyNot.sort()).toEqual(['2 tests: no protoc', '3 tests, marked above']);
  });

  test.each(failing)('names a test that failed and the first line of why: %s', (file, _, line) => {
    const failure = result.failures.find((each) => each.includes(`/${file}.test.js`));
    expect(failure).toContain(`/${file}.test.js ${line}`);
    expect(failure).not.toContain('\n');
    expect(result.failedTests.map((failed) => failed.line)).toContain(failure);
  });

  test.each(noTest)('names failures outside of tests: %s', (_, __, line) => {
    expect(result.failures.filter((each) => each.includes(line))).toHaveLength(1);
  });

  test('names the file that was running when an error occurred outside of a test', () => {
    expect(result.failures.find((line) => line.includes('too late'))).toMatch(/\(during .*late\.test\.js/);
  });

  test('a run without a report has failed and has not run to its end', () => {
    const path = join(root, 'build', 'nothing.json');
    expect(readVitest(path, 'ended with SIGKILL')).toMatchObject({
      failed: 1,
      failedTests: [],
      ended: false,
      note: 'ended with SIGKILL',
    });
  });
});
