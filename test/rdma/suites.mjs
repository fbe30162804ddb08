/**
 * The suites that need RDMA devices, for test/rdma/main.mjs. `command`: how a suite is started, with a file
 * to write its report to, and `tests` where only those are to run. `read`: what came of it, from that file,
 * its output, and what it ended with: `code`, 0 or any other number or the name of a signal, and `error`, the
 * same in words. `shown` is the part of the output that tells what failed.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { root } from '../../scripts/command.mjs';
import { failuresOf, readGtest } from '../../scripts/gtest-report.mjs';
import { readVitest, reporting } from '../../scripts/vitest-report.mjs';

/** What both GoogleTest and vitest end with when tests failed, and nothing else went wrong. */
const TESTS_FAILED = 1;

/** What a sanitizer says last, of a leak for instance, when all tests have passed. */
const SANITIZER = /^SUMMARY: .*$/m;

const endedProperly = (code) => code === 0 || code === TESTS_FAILED;

const named = (suite, part, parts) => (parts === 1 ? suite : `${suite} ${part + 1} of ${parts}`);

/**
 * A program of native/test in `directory`, or one of `parts` parts of it. `filter`: GoogleTest's, '' for all.
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
 * So many guests share the tests of a suite: of two, each takes every second test, or file. With sanitizers
 * the faults take seven minutes, and the Node suite takes as long without; on a busy machine that is twice as
 * much, which is near a suite's limit.
 */
const GUESTS = { verbs_faults_test: 2, node: 3 };

const partsOf = (suite, filter, make) => {
  const parts = filter === '' ? (GUESTS[suite] ?? 1) : 1;
  return Array.from({ length: parts }, (_, part) => make(part, parts));
};

/** The suites that a program is. */
export const nativeSuites = (program, directory, filter) =>
  partsOf(program, filter, (part, parts) => nativeSuite(program, directory, filter, part, parts));

const literally = (text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/**
 * Vitest's arguments for `tests` and no others: their files, and a pattern for the names, which it joins with
 * spaces.
 */
export function only(tests) {
  const names = tests.map((test) => literally(test.names.join(' ')));
  return [...new Set(tests.map(({ file }) => file)), '-t', `^(${names.join('|')})$`];
}

/**
 * Where bundle() writes, as dist is laid out: `place` has one of its own, since two of them may run side by
 * side.
 */
const bundled = (place) => join(root, 'build', 'rdma-dist', place);

/**
 * What the Node suite loads, out of dist in a few large files: in a guest each file takes a tenth of a second
 * to load, and a server of a hundred is started for many a test.
 */
export async function bundle(place) {
  rmSync(bundled(place), { recursive: true, force: true });
  await build({
    absWorkingDir: root,
    entryPoints: [
      ...['dist/runtime/index.js', 'dist/runtime/codec/index.js', 'dist/test/interop/server.js'],
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

/** Those of test/rdma, or one of `parts` parts of them. */
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

/** After bundle(place). `filter`: vitest's pattern of names, '' for all. */
export const nodeSuites = (place, filter) =>
  partsOf('node', filter, (part, parts) => nodeSuite(place, filter, part, parts));
