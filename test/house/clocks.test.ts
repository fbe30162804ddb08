/**
 * Tests that the runtime has one clock (runtime/clock.ts), because any other clock may be faked, or has a
 * different origin.
 */
import { expect, test } from 'vitest';
import { projectFiles, read } from './tree.ts';

/** Matches code that reads a clock. */
const CLOCK = /\bperformance\b|\bDate\.now\b|\bnew Date\(\)|\bhrtime\b/;
/** Files that need another clock, with the reason. */
const OTHERS: Readonly<Record<string, string>> = {
  'runtime/clock.ts': 'it is the module that all others read',
  'runtime/codec/wkt/timestamp.ts':
    "Timestamp.now() must return Date.now(), even when an application's test has replaced Date.now()",
  'runtime/client/credentials.ts':
    'the application gives the time at which its credentials expire in terms of Date.now()',
  'runtime/adapters/grpc/client-call.ts': 'grpc-js takes a deadline as a Date',
  'runtime/adapters/grpc/grpc-js.ts': 'grpc-js gives a deadline as a Date',
};

/** Returns the code without comments and texts, which may mention clocks. */
const code = (file: string): string =>
  read(file)
    .replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
    .replace(/'[^'\n]*'/g, "''");

test('only the listed files of the runtime read another clock', () => {
  const files = projectFiles().filter((file) => /^runtime\/.*\.ts$/.test(file));
  const readers = files.filter((file) => CLOCK.test(code(file)));
  expect(readers.sort()).toEqual(Object.keys(OTHERS).sort());
});

test('the addon takes its origin from that clock, and asks JS for no other clock', () => {
  const native = projectFiles().filter((file) => /^native\/binding\/.*\.(h|cc)$/.test(file));
  const asked = native.filter((file) => /Get\("(performance|Date|now)"\)/.test(read(file)));
  expect(asked).toEqual([]);
});
