/**
 * Tests how failed tests of a guest's suite are repeated: which tests are selected, and the combined result
 * of both runs.
 */
import { describe, expect, test } from 'vitest';

interface FailedTest {
  key: string;
  line: string;
  file?: string;
  names?: string[];
}
interface Report {
  passed: number;
  failed: number;
  failures: string[];
  failedTests: FailedTest[];
  ended: boolean;
  note: string;
  failedOnce?: string[];
}
type Suite = {
  name: string;
  command: (report: string, tests?: FailedTest[]) => string[];
  read: (report: string, output: string, code: number | string, error: string) => Report;
};

const script = (name: string) => import(new URL(`../../scripts/${name}`, import.meta.url).href);
const { REPEAT_MAX, toRepeat, merge } = (await script('repeat.mjs')) as {
  REPEAT_MAX: number;
  toRepeat: (report: Report) => FailedTest[];
  merge: (first: Report, second: Report) => Report;
};
const { nativeSuite, nativeSuites, nodeSuites } = (await script('../test/rdma/suites.mjs')) as {
  nativeSuite: (program: string, directory: string, filter: string) => Suite;
  nativeSuites: (program: string, directory: string, filter: string) => Suite[];
  nodeSuites: (place: string, filter: string) => Suite[];
};

/**
 * Returns the report of a suite that ran to its end: `passed` tests passed, and the tests in `failed` failed.
 */
function report(passed: number, failed: string[], more: Partial<Report> = {}): Report {
  const failedTests = failed.map((key) => ({ key, line: `${key}: why` }));
  const failures = failedTests.map(({ line }) => line);
  return { passed, failed: failed.length, failures, failedTests, ended: true, note: '', ...more };
}
const keys = (tests: FailedTest[]) => tests.map(({ key }) => key);

describe('failed tests are repeated', () => {
  const many = Array.from({ length: REPEAT_MAX + 1 }, (_, i) => `T${i}`);

  test.each<[string, Report, string[]]>([
    ['none, when nothing failed', report(5, []), []],
    ['one, when one failed', report(5, ['A']), ['A']],
    ['all, up to the limit', report(0, many.slice(1)), many.slice(1)],
    ['none, when one more than the limit failed', report(50, many), []],
    ['none, when the suite did not run to its end', report(5, ['A'], { ended: false }), []],
    ['none, when a file did not load', report(5, ['A'], { failed: 2 }), []],
    ['none, when something failed that is not a test', report(5, [], { failed: 1 }), []],
  ])('%s', (_, first, expected) => {
    expect(keys(toRepeat(first))).toEqual(expected);
  });
});

describe('of two tests that failed in the first run', () => {
  const first = report(70, ['A', 'B']);

  test.each<[string, Report, number, string[], string[]]>([
    ['both may pass in the second run', report(2, []), 72, [], ['A: why', 'B: why']],
    ['one may fail again', report(1, ['B']), 71, ['B: why (in a fresh guest too)'], ['A: why']],
    [
      'both may fail again',
      report(0, ['A', 'B']),
      70,
      ['A: why (in a fresh guest too)', 'B: why (in a fresh guest too)'],
      [],
    ],
  ])('%s', (_, second, passed, failures, failedOnce) => {
    const failed = failures.length;
    expect(merge(first, second)).toMatchObject({ passed, failed, failures, failedOnce, note: '' });
  });

  test.each<[string, Report]>([
    ['crashed', report(1, ['B'], { ended: false })],
    ['could not be started', report(0, [], { ended: false, failed: 1 })],
    ['had an error outside of its tests', report(2, [], { failed: 1 })],
    ['ran fewer tests than selected', report(1, [])],
    ['ran other tests', report(3, [])],
  ])('a second run that %s changes no result', (_, second) => {
    const { failed, failures, failedOnce, note } = merge(first, second);
    expect({ failed, failures, failedOnce }).toEqual({
      failed: 2,
      failures: first.failures,
      failedOnce: undefined,
    });
    expect(note).toMatch(/run again/);
  });
});

describe('GoogleTest', () => {
  const suite = nativeSuite('verbs_test', 'build/native', '*Window*');
  const output = (...ends: [string, string][]) =>
    [
      `[==========] Running ${ends.length} tests from 1 test suite.`,
      ...ends.map(([name, end]) => `[ RUN      ] ${name}\n[ ${end.padStart(8)} ] ${name} (3 ms)`),
    ].join('\n');
  const some = output(['A.One', 'OK'], ['P/A.Two/0', 'FAILED']);

  test('the first run uses the given filter, the second run the exact names', () => {
    const [program, ...rest] = suite.command('');
    expect(program).toMatch(/build\/native\/verbs_test$/);
    expect(rest).toEqual(['--gtest_filter=*Window*']);
    expect(suite.command('', report(0, ['A.One', 'P/A.Two/0']).failedTests).slice(1)).toEqual([
      '--gtest_filter=A.One:P/A.Two/0',
    ]);
  });

  test('two guests share the fault tests, but not repeated or filtered tests', () => {
    const [first, second, ...none] = nativeSuites('verbs_faults_test', 'build', '');
    expect(none).toEqual([]);
    for (const [part, each] of [first!, second!].entries()) {
      expect(each.name).toBe(`verbs_faults_test ${part + 1} of 2`);
      expect(each.command('').slice(0, 3)).toEqual([
        'env',
        'GTEST_TOTAL_SHARDS=2',
        `GTEST_SHARD_INDEX=${part}`,
      ]);
      expect(each.command('', report(0, ['A.One']).failedTests)).toHaveLength(2);
    }
    expect(nativeSuites('verbs_faults_test', 'build', 'A.*').map(({ name }) => name)).toEqual([
      'verbs_faults_test',
    ]);
    expect(nativeSuites('verbs_test', 'build', '')).toHaveLength(1);
  });

  test.each<[string, string, number | string, string[]]>([
    ['a test fails', some, 1, ['P/A.Two/0']],
    ['a test fails, and the program crashes after its last test', some, 139, []],
    ['a test fails, and a sanitizer finds a leak at the end', some, 23, []],
    ['a test fails, and the guest disappears', some, 125, []],
    ['a test fails, and the program runs into its time limit', some, 124, []],
    ['all tests pass, but the program fails', output(['A.One', 'OK']), 1, []],
    ['a test does not end', `${some}\n[ RUN      ] A.Three\n`, 1, []],
    ['tests are missing from the output', some.replace('Running 2', 'Running 3'), 1, []],
  ])('%s', (_, printed, code, expected) => {
    const result = suite.read('', printed, code, `ended with ${code}`);
    expect(result.failed).toBeGreaterThan(0);
    expect(keys(toRepeat(result))).toEqual(expected);
  });
});

describe('vitest', () => {
  test('the first run uses the given pattern', () => {
    const [suite, ...none] = nodeSuites('rxe', 'isolation');
    expect(none).toEqual([]);
    expect(suite!.name).toBe('node');
    expect(suite!.command('r.json').slice(-2)).toEqual(['-t', 'isolation']);
  });

  test('three guests share the files, but not repeated tests', () => {
    const suites = nodeSuites('rxe', '');
    expect(suites.map(({ name }) => name)).toEqual(['node 1 of 3', 'node 2 of 3', 'node 3 of 3']);
    for (const [part, each] of suites.entries()) {
      expect(each.command('r.json').slice(-1)).toEqual([`--shard=${part + 1}/3`]);
      expect(each.command('r.json')).not.toContain('-t');
      const again = [{ key: '', line: '', file: 'test/rdma/a.test.ts', names: ['ends'] }];
      expect(each.command('r.json', again).join(' ')).not.toContain('--shard');
    }
  });

  test('the second run uses the files, and the exact names that vitest joins with spaces', () => {
    const failed = (file: string, names: string[]) => ({ key: '', line: '', file, names });
    const tests = [
      failed('test/rdma/a.test.ts', ['calls', 'cost $1 (a|b) [c] x.y*']),
      failed('test/rdma/a.test.ts', ['ends']),
      failed('test/rdma/b.test.ts', ['ends']),
    ];
    const [one, two, option, pattern = '', ...rest] = nodeSuites('rxe', 'isolation')[0]!
      .command('r.json', tests)
      .slice(-4);
    expect([one, two, option, rest]).toEqual(['test/rdma/a.test.ts', 'test/rdma/b.test.ts', '-t', []]);
    const matches = (name: string) => new RegExp(pattern).test(name);
    expect(['calls cost $1 (a|b) [c] x.y*', 'ends'].map(matches)).toEqual([true, true]);
    const others = [
      'calls cost',
      'calls cost $1 (a|b) [c] x.y* more',
      'never ends',
      'ends well',
      'calls cost $1 a',
    ];
    expect(others.filter(matches)).toEqual([]);
  });
});
