/**
 * Tests the test programs that run as a whole. Each program runs once for each environment, and every failure
 * is reported.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

interface Report {
  readonly passed: number;
  readonly failed: number;
  readonly failures: readonly string[];
  readonly notRun: ReadonlyMap<string, number>;
}
const { runPrograms } = (await import(new URL('../../scripts/whole-programs.mjs', import.meta.url).href)) as {
  runPrograms(directory: string, ofAll?: object): Promise<Report>;
};

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-programs-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const ran = (...ends: string[]) =>
  [
    `[==========] Running ${ends.length} tests from 1 test suite.`,
    ...ends.flatMap((end, i) => [`[ RUN      ] S.t${i}`, `[ ${end} ] S.t${i} (1 ms)`]),
  ].join('\n');

/** Creates a build directory with one program, a shell script that CTest lists with these tests. */
function program(script: string, tests: string): string {
  const path = join(folder, 'some_test');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  writeFileSync(join(folder, 'CTestTestfile.cmake'), tests.replaceAll('PROGRAM', `"${path}"`));
  return folder;
}
const found = (name: string) =>
  `add_test(${name} PROGRAM "--gtest_filter=${name}" "--gtest_also_run_disabled_tests")\n`;
const says = (output: string, code = 0) => `cat <<'END'\n${output}\nEND\nexit ${code}`;

test.each<[string, string, string, object]>([
  [
    'the tests of one program are one run',
    says(ran('      OK', '      OK')),
    found('S.t0') + found('S.t1'),
    { passed: 2, failed: 0, failures: [] },
  ],
  [
    'a failed test is named',
    says(ran('      OK', ' FAILED '), 1),
    found('S.t0'),
    { passed: 1, failed: 1, failures: ['S.t1'] },
  ],
  [
    'a leak after tests that pass is a failure',
    says(ran('      OK'), 23),
    found('S.t0'),
    { passed: 1, failed: 1, failures: [expect.stringMatching(/^some_test: .* ended with 23$/)] },
  ],
  [
    'a program that ends before its tests have run has failed',
    says('[==========] Running 2 tests from 1 test suite.'),
    found('S.t0'),
    { passed: 0, failed: 1, failures: ['some_test: it did not end properly'] },
  ],
  [
    'a test that crashes has failed, and later tests are not run',
    says('[==========] Running 3 tests from 1 test suite.\n[ RUN      ] S.t0', 139),
    found('S.t0'),
    { passed: 0, failed: 1, failures: ['S.t0'], notRun: new Map([['S.t0 did not end', 2]]) },
  ],
  [
    'a test that hangs has failed as well',
    "echo '[==========] Running 1 tests from 1 test suite.\n[ RUN      ] S.t0'; exec sleep 100",
    found('S.t0'),
    { passed: 0, failed: 1, failures: ['S.t0'] },
  ],
  [
    'variables of the environment come before the name of a failed test',
    says(ran(' FAILED '), 1),
    `${found('S.t0')}set_tests_properties(S.t0 PROPERTIES ENVIRONMENT A=b)\n`,
    { passed: 0, failed: 1, failures: ['A=b S.t0'] },
  ],
  ['each program gets the common environment', `echo "$GIVEN"`, found('S.t0'), { passed: 1, failed: 0 }],
  ['a program without output has failed', 'exit 0', found('S.t0'), { passed: 0, failed: 1 }],
  [
    'a program that cannot run says why',
    says('not run: no device', 77),
    'add_test(a PROGRAM)\nset_tests_properties(a PROPERTIES SKIP_RETURN_CODE 77)\n',
    { passed: 0, failed: 0, notRun: new Map([['no device', 1]]) },
  ],
  [
    'each environment and each list of arguments is a run',
    says(ran('      OK')),
    `${found('S.t0')}${found('x')}set_tests_properties(x PROPERTIES ENVIRONMENT A=b)\nadd_test(y PROGRAM c)\nadd_test(z PROGRAM d)\n`,
    { passed: 4, failed: 0 },
  ],
])('%s', async (_, script, tests, expected) => {
  const ofAll = { env: { GIVEN: ran('      OK') }, limitMs: 3000 };
  expect(await runPrograms(program(script, tests), ofAll)).toMatchObject(expected);
});

test('a build directory without tests is an error', async () => {
  writeFileSync(join(folder, 'CTestTestfile.cmake'), '');
  await expect(runPrograms(folder)).rejects.toThrow(/CTest knows no tests/);
});
