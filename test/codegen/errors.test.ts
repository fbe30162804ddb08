/** Tests errors in a .proto and their location: file, line, column and the affected text. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { GenerateError, generate } from '../../codegen/index.ts';
import { diagnosticsOf, proto3, workspace } from './workspace.ts';

/** The body begins in line 3 of a.proto. */
const inOneFile: [string, string, string][] = [
  [
    'a broken field',
    'message A {\n  int32 x = ;\n}',
    "4:13: error: expected the field's number, found ; | ;",
  ],
  ['a missing semicolon', 'message A {\n  int32 x = 1\n}', '5:1: error: expected ;, found } | }'],
  [
    'a file that ends too early',
    'message A {\n  int32 x = 1',
    '4:14: error: expected ;, but the file ends | ',
  ],
  [
    'an unknown statement',
    '\nfrobnicate Foo {}',
    '4:1: error: expected message, enum, service, extend, import, option or package, found frobnicate | frobnicate',
  ],
  ['an unterminated comment', '/* abc', '3:1: error: this comment has no end | /*'],
  ['an invalid name', 'message 9A {}', '3:9: error: 9A is neither a number nor a name | 9A'],
  ['an unterminated string', 'option x = "abc;', '3:12: error: this string has no end on its line | "'],
  [
    'a required field',
    'message A {\n required int32 x = 1;\n}',
    '4:2: error: proto3 has no required fields | required',
  ],
  [
    'an unknown type',
    'message A {\n  int32 ok = 1;\n  Missing x = 2;\n}',
    '5:3: error: unknown type Missing | Missing',
  ],
  [
    'an unknown type in a map',
    'message A {\n  map<string, Missing> x = 1;\n}',
    '4:15: error: unknown type Missing | Missing',
  ],
  [
    'an unknown type in a oneof',
    'message A {\n  oneof o {\n    Missing x = 1;\n  }\n}',
    '5:5: error: unknown type Missing | Missing',
  ],
  [
    'an unknown type, repeated',
    'message A { repeated Missing x = 1; }',
    '3:22: error: unknown type Missing | Missing',
  ],
  ['a misspelled scalar', 'message A { sting x = 1; }', '3:13: error: unknown type sting | sting'],
  [
    'an unknown request',
    'service S { rpc Get(Missing) returns (A); } message A {}',
    '3:21: error: unknown type Missing | Missing',
  ],
  [
    'an unknown response',
    'message A {} service S { rpc Get(A) returns (.t.Missing); }',
    '3:46: error: unknown type .t.Missing | .t.Missing',
  ],
  [
    'an unknown streamed response',
    'message A {} service S { rpc Get(A) returns (stream Missing); }',
    '3:53: error: unknown type Missing | Missing',
  ],
  [
    'an enum as request',
    'enum E { X = 0; } message A {} service S { rpc Get(E) returns (A); }',
    '3:52: error: E is an enum, not a message | E',
  ],
  [
    'a field number used twice',
    'message A {\n  int32 x = 1;\n  int32 y = 1;\n}',
    '5:13: error: the number 1 is used by x already | 1',
  ],
  [
    'a field name used twice',
    'message A {\n  int32 x = 1;\n  int32 x = 2;\n}',
    '5:9: error: t.A.x is declared twice in this file | x',
  ],
  [
    'a reserved number',
    'message A {\n  reserved 2 to 4;\n  int32 x = 3;\n}',
    '5:13: error: the number 3 is reserved in message A | 3',
  ],
  [
    'a reserved name',
    'message A {\n  reserved "x";\n  int32 x = 3;\n}',
    '5:9: error: the name x is reserved in message A | x',
  ],
  [
    'field number 0',
    'message A { int32 x = 0; }',
    '3:23: error: field number 0 is not between 1 and 536870911 | 0',
  ],
  [
    'a field number that is too large',
    'message A { int32 x = 536870912; }',
    '3:23: error: field number 536870912 is not between 1 and 536870911 | 536870912',
  ],
  [
    'a field number of protobuf itself',
    'message A { int32 x = 19000; }',
    '3:23: error: field numbers 19000 to 19999 belong to protobuf itself | 19000',
  ],
  [
    'a message declared twice',
    'message A {}\nmessage A {}',
    '4:9: error: t.A is declared twice in this file | A',
  ],
  [
    'a method declared twice',
    'message A {}\nservice S {\n  rpc X(A) returns (A);\n  rpc X(A) returns (A);\n}',
    '6:7: error: t.S.X is declared twice in this file | X',
  ],
  [
    'an enum value used twice',
    'enum E {\n  A = 0;\n  B = 0;\n}',
    '5:7: error: the number 0 is used by A already; option allow_alias = true allows it | 0',
  ],
  [
    'an enum name used twice',
    'enum E {\n  A = 0;\n  A = 1;\n}',
    '5:3: error: t.A is declared twice in this file; values of enums share the scope of their enum | A',
  ],
  [
    'an enum that does not start with 0',
    'enum E {\n  A = 1;\n}',
    '4:7: error: the first value of enum E must be 0 in proto3 | 1',
  ],
  ['an empty enum', 'enum E {}', '3:6: error: enum E has no values | E'],
  [
    'an enum value that is too large',
    'enum E { A = 0; B = 4294967296; }',
    '3:21: error: enum value 4294967296 does not fit 32 bits | 4294967296',
  ],
  [
    'a default value',
    'message A { int32 x = 1 [default = 5]; }',
    '3:36: error: proto3 has no default values | 5',
  ],
  ['a group', 'message A { group X = 1 {} }', '3:13: error: proto3 has no groups | group'],
  [
    'an extension',
    'message A {}\nextend A { int32 x = 5; }',
    '4:8: error: proto3 extends nothing but the options of google.protobuf, not t.A | A',
  ],
  [
    'an extension range',
    'message A { extensions 5 to 9; }',
    '3:24: error: proto3 has no extension ranges | 5',
  ],
  [
    'a map of maps',
    'message A { map<string, map<string, int32>> x = 1; }',
    '3:25: error: the values of a map cannot be maps; put the inner one into a message | map',
  ],
  [
    'a map key that cannot be one',
    'message A { map<double, int32> x = 1; }',
    '3:17: error: double cannot be the key of a map | double',
  ],
];

test.each(inOneFile)('%s', async (_what, body, expected) => {
  expect(await diagnosticsOf({ 'a.proto': proto3(body) })).toEqual([`a.proto:${expected}`]);
});

describe('options', () => {
  const rule =
    'import "google/protobuf/descriptor.proto";\nmessage Rule { int32 most = 1; Kind kind = 2; }\nenum Kind { NONE = 0; SOME = 1; }\nextend google.protobuf.FieldOptions { Rule rule = 50000; }\n';
  const message = (options: string) => `${rule}message A { int32 x = 1 [${options}]; }`;

  test.each([
    [
      'a misspelled one',
      'depricated = true',
      '7:26: error: google.protobuf.FieldOptions has no option depricated; did you mean deprecated? | depricated',
    ],
    [
      'a misspelled custom one',
      '(rul).most = 1',
      '7:27: error: unknown option rul; did you mean rule? | rul',
    ],
    [
      'a custom one that nobody declares',
      '(google.api.http) = 1',
      '7:27: error: unknown option google.api.http: import the file that declares it | google.api.http',
    ],
    [
      'a field that it does not have',
      '(rule).frobnicate = 1',
      '7:33: error: t.Rule has no option frobnicate | frobnicate',
    ],
    [
      'a wrong kind of value',
      '(rule).most = "x"',
      '7:40: error: most takes a whole number from -2147483648 to 2147483647 | "x"',
    ],
    [
      'a value out of range',
      '(rule) = { most: 2147483648 }',
      '7:43: error: most takes a whole number from -2147483648 to 2147483647 | 2147483648',
    ],
    [
      'a value that its enum does not have',
      '(rule).kind = SOMME',
      '7:40: error: kind takes a value of t.Kind (NONE, SOME); did you mean SOME? | SOMME',
    ],
    [
      'one that is set twice',
      '(rule).most = 1, (rule).most = 2',
      '7:50: error: option most is set twice | most',
    ],
    [
      'one with fields of a number',
      '(rule).most.x = 1',
      '7:33: error: option most has no fields of its own | most',
    ],
    ['packed strings', 'packed = true', '7:19: error: only repeated numbers can be packed | x'],
  ])('%s', async (_what, options, expected) => {
    expect(await diagnosticsOf({ 'a.proto': proto3(message(options)) })).toEqual([`a.proto:${expected}`]);
  });
});

describe('syntax and edition', () => {
  test.each([
    [
      'no syntax',
      'message A {}',
      '1:1: warning: no syntax = "proto3" or edition at the start: taken as proto2 | message',
    ],
    ['an empty file', '', undefined],
    ['proto2', '\nsyntax = "proto2";', undefined],
    ['an edition', 'edition = "2023";', undefined],
    [
      'an unknown syntax',
      '// hello\nsyntax = "proto4";',
      '2:10: error: syntax "proto4" is not supported, only "proto2" and "proto3" | "proto4"',
    ],
    [
      'an unknown edition',
      'edition = "2022";',
      '1:11: error: edition "2022" is not supported, only "2023", "2024" and "2026" | "2022"',
    ],
    [
      'a syntax that comes too late',
      'syntax = "proto3";\nmessage A {}\nsyntax = "proto3";',
      '3:1: error: syntax must be the first statement of the file | syntax',
    ],
  ])('%s', async (_what, text, expected) => {
    expect(await diagnosticsOf({ 'a.proto': text })).toEqual(
      expected === undefined ? [] : [`a.proto:${expected}`],
    );
  });
});

describe('features where they have no meaning', () => {
  const file = (body: string) => `edition = "2023";\npackage t;\n${body}`;
  test.each([
    [
      'of fields on a message',
      'message A { option features.message_encoding = DELIMITED; }',
      '3:29: error: feature message_encoding is for fields, files only | message_encoding',
    ],
    [
      'of enums on a field, in braces',
      'message A { int32 a = 1 [features = { enum_type: CLOSED }]; }',
      '3:39: error: feature enum_type is for enums, files only | enum_type',
    ],
    [
      'of messages on a service',
      'service S { option features.json_format = ALLOW; }',
      '3:29: error: feature json_format is for messages, enums, files only | json_format',
    ],
    [
      'any on a file',
      'option features.message_encoding = DELIMITED;\noption features.enum_type = CLOSED;',
      undefined,
    ],
  ])('%s', async (_what, body, expected) => {
    expect(await diagnosticsOf({ 'a.proto': file(body) })).toEqual(
      expected === undefined ? [] : [`a.proto:${expected}`],
    );
  });
});

describe('several files', () => {
  test('a missing import', async () => {
    const [diagnostic] = await diagnosticsOf({ 'a.proto': proto3('import "x/b.proto";') });
    expect(diagnostic).toMatch(
      /^a\.proto:3:8: error: import "x\/b\.proto" was not found in .*; name its include directory with -I \| "x\/b\.proto"$/,
    );
  });

  test('a type of a file that is not imported', async () => {
    const files = { 'a.proto': proto3('message A { B b = 1; }'), 'b.proto': proto3('message B {}') };
    // Files are parsed in the given order; b is known when names are resolved.
    expect(await diagnosticsOf(files)).toEqual([
      'a.proto:3:13: error: type B is declared in b.proto, which this file does not import | B',
    ]);
  });

  test('a type that is reached through a non-public import', async () => {
    const files = {
      'a.proto': proto3('import "b.proto";\nmessage A { C c = 1; }'),
      'b.proto': proto3('import "c.proto";'),
      'c.proto': proto3('message C {}'),
    };
    expect(await diagnosticsOf(files)).toEqual([
      'a.proto:4:13: error: type C is declared in c.proto, which this file does not import | C',
    ]);
    expect(await diagnosticsOf({ ...files, 'b.proto': proto3('import public "c.proto";') })).toEqual([]);
  });

  test('one full name in two files', async () => {
    const files = { 'a.proto': proto3('message A {}'), 'b.proto': proto3('enum A { X = 0; }') };
    expect(await diagnosticsOf(files)).toEqual(['b.proto:3:6: error: t.A is declared in a.proto too | A']);
  });

  test('files that import each other', async () => {
    const files = { 'a.proto': proto3('import "b.proto";'), 'b.proto': proto3('import "a.proto";') };
    expect(await diagnosticsOf(files)).toEqual([
      'b.proto:3:8: error: files import each other in a circle: a.proto → b.proto → a.proto | "a.proto"',
    ]);
  });

  test('all errors of all files at once, without consequential ones', async () => {
    const files = {
      'a.proto': proto3('import "broken.proto";\nmessage A { Broken b = 1; }'),
      'broken.proto': proto3('message Broken {'),
      'c.proto': proto3('message C {\n  X x = 1;\n  Y y = 2;\n}'),
    };
    expect(await diagnosticsOf(files)).toEqual([
      expect.stringMatching(/^broken\.proto:3:17: error: /),
      'c.proto:4:3: error: unknown type X | X',
      'c.proto:5:3: error: unknown type Y | Y',
    ]);
  });

  test('a missing file, and one outside the include directories', async () => {
    const directory = workspace({ 'in/a.proto': proto3(''), 'out/b.proto': proto3('') });
    const run = (file: string) =>
      generate({ files: [join(directory, file)], include: [join(directory, 'in')] });
    await expect(run('in/none.proto')).rejects.toThrow(/none\.proto: error: no such file/);
    await expect(run('out/b.proto')).rejects.toThrow(
      /b\.proto: error: lies in none of the include directories/,
    );
  });
});

test('two methods with the same id', async () => {
  // These names were found by search; both hash to the same 32 bits.
  const [first, second] = ['M562789', 'M779192'];
  const body = `message A {}\nservice S {\n  rpc ${first}(A) returns (A);\n  rpc ${second}(A) returns (A);\n}`;
  expect(await diagnosticsOf({ 'a.proto': proto3(body) })).toEqual([
    expect.stringMatching(
      new RegExp(
        `^a\\.proto:6:7: error: t\\.S/${second} and t\\.S/${first} have the same method id \\d+: rename one \\| ${second}$`,
      ),
    ),
  ]);
});

test('two methods with the same id, of two services', async () => {
  const body = `message A {}\nservice S {\n  rpc M87820e(A) returns (A);\n}\nservice T {\n  rpc Mec5dec(A) returns (A);\n}`;
  expect(await diagnosticsOf({ 'a.proto': proto3(body) })).toEqual([
    expect.stringMatching(
      /^a\.proto:8:7: error: t\.T\/Mec5dec and t\.S\/M87820e have the same method id \d+: rename one/,
    ),
  ]);
});

test('ranges that lie in the same other range', async () => {
  const body = 'message A {\n  reserved 1 to 100;\n  reserved 5 to 6;\n  reserved 50 to 60;\n}';
  const overlaps = (range: string) =>
    expect.stringContaining(`error: reserved range ${range} overlaps reserved range 1 to 100`);
  expect(await diagnosticsOf({ 'a.proto': proto3(body) })).toEqual([
    overlaps('5 to 6'),
    overlaps('50 to 60'),
  ]);
});

test('nothing is written unless everything can be', async () => {
  const directory = workspace({
    'good.proto': proto3('message A {}'),
    'bad.proto': proto3('message B { X x = 1; }'),
  });
  const out = join(directory, 'out');
  const files = ['good.proto', 'bad.proto'].map((name) => join(directory, name));
  await expect(generate({ files, out })).rejects.toBeInstanceOf(GenerateError);
  expect(existsSync(out)).toBe(false);
});
