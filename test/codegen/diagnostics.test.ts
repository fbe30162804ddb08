/**
 * Tests the printed errors for wrong input. The size of the errors is limited, their carets are in the right
 * place, and all errors are printed at once.
 */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { formatDiagnostic, quoteSource } from '../../codegen/diagnostic.ts';
import { GenerateError, generate } from '../../codegen/index.ts';
import { diagnosticsOf, proto3, workspace } from './workspace.ts';

async function refused(files: Readonly<Record<string, string>>, out?: string): Promise<GenerateError> {
  const directory = workspace(files);
  const paths = Object.keys(files)
    .filter((path) => path.endsWith('.proto'))
    .map((path) => join(directory, path));
  const options = {
    files: paths,
    include: [directory],
    ...(out !== undefined && { out: join(directory, out) }),
  };
  const error: unknown = await generate(options).then(
    () => undefined,
    (reason) => reason,
  );
  if (error instanceof GenerateError) return error;
  throw error ?? new Error('it was accepted');
}

const printed = ({ diagnostics, message }: GenerateError): string =>
  [message, ...diagnostics.map(quoteSource)].join('\n');

describe('the output is short for a file of any size', () => {
  test.each([
    ['with ten thousand errors in one line', 'Missing x = 1; '.repeat(10_000)],
    ['with ten thousand lines that have an error each', 'Missing x = 1;\n'.repeat(10_000)],
    ['with a name of a megabyte', `${'M'.repeat(1_000_000)} x = 1;`],
    ['with an error after a megabyte', `/* ${' '.repeat(1_000_000)} */ Missing x = 1;`],
    ['with an error before a megabyte', `Missing x = 1; /* ${' '.repeat(1_000_000)} */`],
  ])('%s', async (_what, fields) => {
    const error = await refused({ 'a.proto': proto3(`message A { ${fields} }`) });
    expect(error.diagnostics.length).toBeLessThanOrEqual(101);
    expect(printed(error).length).toBeLessThan(60_000);
  });

  test('an error is shown, however many warnings come first', async () => {
    const enums = Array.from(
      { length: 200 },
      (_, i) => `enum K${i} { K${i}_X = 0; X${i} = 1; K${i}_X${i} = 2; }`,
    );
    const error = await refused({
      'a.proto': `syntax = "proto2";\n${enums.join('\n')}\nmessage A { reserved 5; reserved 5; }`,
    });
    expect(error.message).toContain('reserved range 5 overlaps reserved range 5');
  });
});

describe('the caret is under the affected text', () => {
  test.each([
    ['in a short line', `syntax = "proto3"; message A { Missing x = 1; }`],
    ['after tabs', `\tsyntax = "proto3";\tmessage A {\t\tMissing x = 1; }`],
    [
      'in a long line',
      `syntax = "proto3"; message A { ${'int32 y = 2; '.repeat(50)} Missing x = 1; ${'int32 z = 3; '.repeat(50)} }`,
    ],
    [
      'at the end of a long line',
      `syntax = "proto3"; message A { ${'int32 y = 2; '.repeat(50)} Missing x = 1;\n}`,
    ],
    ['after a byte order mark', `\uFEFFsyntax = "proto3"; message A { Missing x = 1; }`],
  ])('%s', async (_what, text) => {
    const { diagnostics } = await refused({ 'a.proto': text });
    const found = diagnostics.find(({ message }) => message.startsWith('unknown type'));
    const [line = '', carets = ''] = quoteSource(found as never).split('\n');
    expect(line.slice(carets.indexOf('^'), carets.lastIndexOf('^') + 1)).toBe('Missing');
    expect(line.length).toBeLessThan(130);
  });

  // A user who generates code from other people's files also sees the texts of those people.
  test('the output contains no terminal commands and no text direction controls', async () => {
    const name = 'a\x1b[2J\nb.proto';
    const { diagnostics } = await refused({
      [name]: `syntax = "proto3"; /*\t\x1b[31m\x9b1m\u202e*/ Missing`,
    });
    const [found] = diagnostics;
    const [line = '', carets = ''] = quoteSource(found!).split('\n');
    expect(line.slice(carets.indexOf('^'), carets.lastIndexOf('^') + 1)).toBe('Missing');
    expect(line).toContain('/*\t\uFFFD[31m\uFFFD1m\uFFFD*/');
    expect(formatDiagnostic(found!)).toMatch(/\/a\uFFFD\[2J\uFFFDb\.proto:1:\d+: error: /);
  });

  test.each([
    ['message A { /* abc\n\n\n', 'a.proto:6:1: error: expected }, but the file ends | '],
    ['message A {\r\n  int32 x = 1', 'a.proto:4:14: error: expected ;, but the file ends | '],
  ])('at the end of the file: %j', async (body, expected) => {
    expect((await diagnosticsOf({ 'a.proto': proto3(body) })).at(-1)).toBe(expected);
  });
});

test('errors of all phases at once', async () => {
  const found = await diagnosticsOf({
    'a.proto': `syntax = "proto3"; package t;
message A { Missing x = 1; int32 y = 0; int32 z = 2 [default = 5]; int32 w = 3 [depricated = true]; }
enum E { X = 1; }
service S { rpc M562789(A) returns (A); rpc M779192(A) returns (A); }`,
  });
  expect(found.map((each) => each.split(' | ')[0]?.replace('a.proto:', ''))).toEqual([
    '2:13: error: unknown type Missing',
    '2:81: error: google.protobuf.FieldOptions has no option depricated; did you mean deprecated?',
    '2:64: error: proto3 has no default values',
    '2:38: error: field number 0 is not between 1 and 536870911',
    '3:14: error: the first value of enum E must be 0 in proto3',
    expect.stringMatching(/^4:45: error: t\.S\/M779192 and t\.S\/M562789 have the same method id/),
  ]);
});

describe('an output that cannot be written', () => {
  const files = { 'a.proto': proto3('message A {}'), 'dir/b.proto': proto3('message B {}'), taken: '' };
  test('below a file', async () => {
    expect((await refused(files, 'taken/out')).message).toMatch(
      /taken\/out\/a\.rdma\.ts: error: cannot be written: a part of this path is a file, not a directory$/m,
    );
  });
  test('a file where a directory has to be', async () => {
    expect((await refused({ ...files, 'out/dir': '' }, 'out')).message).toMatch(/cannot be written/);
  });
});
