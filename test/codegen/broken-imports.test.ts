/**
 * One of several files has a syntax error. Files that import it report their own errors, but no error that
 * only results from the syntax error.
 */
import { expect, test } from 'vitest';
import { diagnosticsOf, proto3 } from './workspace.ts';

/** Returns only `file:line: error: message`, without the column. */
const linesOf = async (files: Readonly<Record<string, string>>) =>
  (await diagnosticsOf(files)).map((each) => each.replace(/:\d+: error/, ': error').split(' | ')[0]);

test('a file that imports an unreadable one reports its own errors, but no missing name that may exist there', async () => {
  const files = {
    'broken.proto': proto3('message Broken {'),
    'a.proto': proto3(`import "broken.proto";
message A {
  Broken b = 1;
  int32 c = 1;
  Lost.Inner d = 3 [(lost) = 1, (lost.rule).a.b = 2];
  int32 e = 0;
  string f = 5 [jstype = JS_NUMBER];
  t.Lost g = 6;
}
enum E { ZERO = 0; }
extend Lost { int32 x = 1; }
service S { rpc Get(Lost) returns (.t.Lost); rpc Set(E) returns (int32); }`),
    // The declarations of a.proto are known; the imports of a.proto do not matter to this file.
    'b.proto': proto3('import "a.proto";\nmessage B {\n  A a = 1;\n  Elsewhere e = 2;\n}'),
    'public.proto': proto3('import public "broken.proto";'),
    'c.proto': proto3('import "public.proto";\nmessage C {\n  Lost l = 1;\n  int32 m = 0;\n}'),
    'd.proto': proto3('import "none.proto";\nmessage D { X x = 1; }\nenum F { ONE = 1; }'),
  };
  expect(await linesOf(files)).toEqual([
    expect.stringMatching(/^broken\.proto:3: error: /),
    expect.stringMatching(/^d\.proto:3: error: import "none\.proto" was not found/),
    'a.proto:14: error: int32 is a scalar type, not a message: wrap it in a message',
    'b.proto:6: error: unknown type Elsewhere',
    'a.proto:6: error: the number 1 is used by b already',
    'a.proto:8: error: field number 0 is not between 1 and 536870911',
    'a.proto:9: error: jstype is for 64-bit integers only',
    'c.proto:6: error: field number 0 is not between 1 and 536870911',
    'd.proto:5: error: the first value of enum F must be 0 in proto3',
  ]);
});

test('options of messages that a broken file declares cause no error', async () => {
  const files = {
    'broken.proto': proto3('message Rule { int32 most = 1; '),
    'rule.proto': proto3(`import "google/protobuf/descriptor.proto";
import "broken.proto";
extend google.protobuf.FieldOptions { Rule rule = 50000; }
extend LostOptions { int32 other = 50000; }`),
    'a.proto': proto3(`import "rule.proto";
message A {
  int32 x = 1 [(rule).most = 1];
  int32 y = 2 [(rule) = { most: 1 }];
  int32 z = 3 [(other) = 1];
  int32 w = 4 [(none) = 1];
}`),
  };
  expect(await linesOf(files)).toEqual([
    expect.stringMatching(/^broken\.proto:3: error: /),
    'a.proto:8: error: unknown option none: import the file that declares it',
  ]);
});

test('the built-in descriptor.proto replaces a broken one, and missing names cause no error', async () => {
  const path = 'google/protobuf/descriptor.proto';
  const a = (option: string) => proto3(`option ${option};\nmessage A { int32 x = 0 [lost = 1]; }`);
  const files = {
    [path]: 'syntax = "proto2";\npackage google.protobuf;\nmessage FileOptions {',
    'a.proto': a('java_package = 5'),
    'b.proto': proto3(`import "${path}";
message Rule { google.protobuf.Lost lost = 1; }
extend google.protobuf.FieldOptions { Missing rule = 50000; int32 taken = 50001; bool taken = 50002; }`),
  };
  expect(await linesOf(files)).toEqual([
    expect.stringMatching(/^google\/protobuf\/descriptor\.proto:3: error: /),
    expect.stringMatching(/^b\.proto:5: error: t\.taken is declared twice/),
    'a.proto:3: error: java_package takes a string in quotes',
    'a.proto:4: error: field number 0 is not between 1 and 536870911',
  ]);
  expect(await linesOf({ [path]: 'syntax = "proto2";', 'a.proto': a('java_package = "x"') })).toEqual([
    `a.proto:4: error: the ${path} of the include directories has no FieldOptions`,
    `a.proto:3: error: the ${path} of the include directories has no FileOptions`,
    'a.proto:4: error: field number 0 is not between 1 and 536870911',
  ]);
});
