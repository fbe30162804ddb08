/**
 * Lists the suites that need RDMA devices, for test/rdma/main.mjs. `command` starts a suite. `command` gets
 * the file for its report, and the tests to run unless all are run. `read` returns the result of a suite from
 * that file, its output and its exit. `code` is a number or the name of a signal, and `error` is the same in
 * words. `shown` is the part of the output that explains the failures.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { root } from '../../scripts/command.mjs';
import { failuresOf, readGtest } from '../../scripts/gtest-report.mjs';
import { readVitest, reporting } from '../../scripts/vitest-report.mjs';

/** The exit code of both GoogleTest and vitest when tests failed and nothing else went wrong. */
const TESTS_FAILED = 1;

/** The last line of a sanitizer that found something, such as a leak, after all tests have passed. */
const SANITIZER = /^SUMMARY: .*$/m;

const endedProperly = (code) => code === 0 || code === TESTS_FAILED;

const named = (suite, part, parts) => (parts === 1 ? suite : `${suite} ${part + 1} of ${parts}`);

/**
 * Returns the suite of a program of native/test in `directory`, or of part number `part` when it is divided
 * into `parts` parts. `filter` is GoogleTest's, or "" for all tests.
 */
export const nativeSuite = (program, directory, filter, part = 0, parts = 1) => ({
  name: named(program, part, parts),
  command: (_, tests) => {
    const wanted = tests?.map(({ key }) => key).join(':') ?? filter;
    const shares = tests === undefined && parts > 1;
    return [
      ...(shares ? ['env', `GTEST_TOTAL_SHARDS=${parts}`, `GTEST_SHARD_INDEX=${part}`] : []),
      join(root, directory, program),
      ...(wanted === '' ? [] : [`--gtest_filter=${wanted}`]),
    ];
  },
  read: (_, output, code, error) => {
    const { notRun, ...report } = readGtest(output);
    const unseen = code !== 0 && report.failed === 0;
    return {
      ...report,
      ended: report.ended && endedProperly(code) && !unseen,
      failed: unseen ? 1 : report.failed,
      failedTests: report.failures.map((name) => ({ key: name, line: name })),
      whyNot: [...notRun].map(([why, count]) => `${count} tests: ${why}`),
      note: unseen ? [error, ...(SANITIZER.exec(output) ?? [])].join(': ') : report.note,
      shown: code === 0 ? '' : failuresOf(output),
    };
  },
});

/**
 * The number of guests that share a suite; with two guests, each takes every second test, or every second
 * file. The fault tests take seven minutes with sanitizers, and the Node suite takes seven minutes without
 * them. A busy machine doubles this time, which then comes near the time limit of a suite.
 */
const GUESTS = { verbs_faults_test: 2, node: 3 };

const partsOf = (suite, filter, make) => {
  const parts = filter === '' ? (GUESTS[suite] ?? 1) : 1;
  return Array.from({ length: parts }, (_, part) => make(part, parts));
};

/** Returns the suites of a program. */
export const nativeSuites = (program, directory, filter) =>
  partsOf(program, filter, (part, parts) => nativeSuite(program, directory, filter, part, parts));

const literally = (text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/**
 * Returns the vitest arguments that run only `tests`: their files, and a pattern for their names, which
 * vitest joins with spaces.
 */
export function only(tests) {
  const names = tests.map((test) => literally(test.names.join(' ')));
  return [...new Set(tests.map(({ file }) => file)), '-t', `^(${names.join('|')})$`];
}

/**
 * Returns the output directory of bundle(), which is laid out like dist. Each `place` has its own build
 * directory, because two may run at the same time.
 */
const bundled = (place) => join(root, 'build', 'rdma-dist', place);

/**
 * Bundles the files that the Node suite loads from dist into a few large files. Loading a file takes a tenth
 * of a second in a guest, and many tests start a server that consists of a hundred files.
 */
export async function bundle(place) {
  rmSync(bundled(place), { recursive: true, force: true });
  await build({
    absWorkingDir: root,
    entryPoints: [
      ...['index', 'codec/index', 'verbs/index', 'memory/index'].map((name) => `dist/runtime/${name}.js`),
      'dist/test/interop/server.js',
      ...['echo-server', 'client-script'].map((name) => `dist/test/runtime/process/${name}.js`),
      'dist/test/slow/load.js',
      'dist/test/soak/traffic.js',
    ],
    outbase: 'dist',
    outdir: bundled(place),
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    tsconfigRaw: {}, // its paths lead from rdma-rpc to the sources, not to dist
    conditions: ['rdma-rpc-modules'], // not to dist/bundle, which would be a second copy
    logLevel: 'error',
  });
}

/** Returns the suite of test/rdma, or of part number `part` when it is divided into `parts` parts. */
const nodeSuite = (place, filter, part, parts) => ({
  name: named('node', part, parts),
  command: (report, tests) => [
    ...['env', `RDMA_RPC_TEST_DIST=${bundled(place)}`, process.execPath],
    ...['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/rdma/vitest.config.ts'],
    ...reporting(report),
    ...(tests === undefined && parts > 1 ? [`--shard=${part + 1}/${parts}`] : []),
    ...(tests !== undefined ? only(tests) : filter === '' ? [] : ['-t', filter]),
  ],
  read: (report, output, code, error) => {
    const result = readVitest(join(root, report), code === 0 ? '' : error);
    const shown = code !== 0 || result.whyNot.length > 0 ? output : '';
    return { ...result, ended: result.ended && endedProperly(code), shown };
  },
});

/**
 * Returns the Node suites; call bundle(place) first. `filter` is a vitest pattern of names, or "" for all
 * tests.
 */
export const nodeSuites = (place, filter) =>
  partsOf('node', filter, (part, parts) => nodeSuite(place, filter, part, parts));
