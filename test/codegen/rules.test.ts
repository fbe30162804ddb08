/**
 * Tests the rules of proto2 and proto3. Each rule has a file that follows it and a file that violates it.
 * protoc and buf agree on each file.
 */
import { describe, expect, test } from 'vitest';
import { type Rule, testRules } from './rules.ts';
import { diagnosticsOf } from './workspace.ts';

const proto2: Rule[] = [
  [
    'extension ranges that overlap in one number',
    'message A { extensions 1 to 5, 5 to 9; }',
    'extension range 5 to 9 overlaps extension range 1 to 5',
  ],
  ['adjacent extension ranges', 'message A { extensions 1 to 5, 6 to 9; extensions 10; }', undefined],
  [
    'an extension range inside of another',
    'message A { extensions 1 to 50; extensions 60; extensions 3; }',
    'extension range 3 overlaps extension range 1 to 50',
  ],
  [
    'a reserved number twice',
    'message A { reserved 1 to 5; reserved 3; }',
    'reserved range 3 overlaps reserved range 1 to 5',
  ],
  [
    'a reserved number that is left to extensions',
    'message A { extensions 3; reserved 1 to 5; }',
    'overlaps',
  ],
  ['a reserved name twice', 'message A { reserved "a", "b", "a"; }', 'the name a is reserved more than once'],
  [
    'reserved numbers of an enum',
    'enum E { X = 0; reserved -5 to -1, 1 to 5, 5; }',
    'reserved range 5 overlaps reserved range 1 to 5',
  ],
  [
    'a reserved name of an enum',
    'enum E { X = 0; reserved "a", "a"; }',
    'the name a is reserved more than once',
  ],
  [
    'a reserved number 0',
    'message A { reserved 0; }',
    '0 to 0 is no range of field numbers (1 to 536870911)',
  ],
  ['enum values that are equal without their prefix', 'enum Kind { KIND_X = 0; X = 1; }', undefined],
  [
    'fields with the same JSON name',
    'message A { optional int32 foo_bar = 1; optional int32 fooBar = 2; }',
    undefined,
  ],
  [
    'a message set with fields',
    'message A { option message_set_wire_format = true; optional int32 a = 1; }',
    'the message set A has fields: only extensions may',
  ],
  ['a number with a +', 'message A { optional int32 a = 1 [default = +1]; }', 'expected a value, found +'],
  [
    'a float with a suffix as in C',
    'message A { optional float a = 1 [default = 1.5f]; }',
    '1.5f is neither a number nor a name',
  ],
  ['a float in hexadecimal', 'message A { optional float a = 1 [default = 0x1f]; }', undefined],
  [
    'a default of -0 for an unsigned integer',
    'message A { optional uint32 a = 1 [default = -0]; }',
    'the default of this field must be a whole number from 0 to 4294967295',
  ],
  ['a default of -0 for a signed integer', 'message A { optional int32 a = 1 [default = -0]; }', undefined],
  [
    'a json_name on an extension',
    'message A { extensions 4; } extend A { optional int32 a = 4 [json_name = "b"]; }',
    'an extension has no json_name: in JSON it goes by its full name',
  ],
  [
    'a json_name on an extension that equals its default',
    'message A { extensions 4; } extend A { optional int32 a_b = 4 [json_name = "aB"]; }',
    undefined,
  ],
  [
    'an extension with the entry type of a map',
    'message A { map<int32, int32> a = 1; extensions 4; } extend A { optional A.AEntry b = 4; }',
    'A.AEntry belongs to a map: write map<…> for a map of your own',
  ],
];

const proto3: Rule[] = [
  [
    'enum values that are equal without their prefix',
    'enum Kind { KIND_X = 0; X = 1; }',
    'KIND_X and X have the same name without the prefix Kind',
  ],
  [
    'enum values that are equal without a prefix in another case',
    'enum FooBar { FOOBAR_A_B = 0; FOO_BAR__a_b = 1; }',
    'FOOBAR_A_B and FOO_BAR__a_b have the same name without the prefix FooBar',
  ],
  [
    'aliases that are equal without their prefix',
    'enum Kind { option allow_alias = true; KIND_X = 0; X = 0; }',
    undefined,
  ],
  ['enum values that differ only in underscores', 'enum Kind { FOO_BAR = 0; FOOBAR = 1; }', undefined],
  [
    'an enum value that is only the prefix',
    'enum Kind { KIND = 0; KIND_ = 1; OTHER = 2; }',
    'KIND and KIND_ have the same name without the prefix Kind',
  ],
  [
    'fields with the same JSON name',
    'message A { int32 foo_bar = 1; int32 fooBar = 2; }',
    'foo_bar and fooBar are both called fooBar in JSON: give one a json_name of its own',
  ],
  [
    'fields with the same default JSON name that a json_name distinguishes',
    'message A { int32 foo_bar = 1 [json_name = "x"]; int32 fooBar = 2; }',
    'foo_bar and fooBar would both be called fooBar in JSON, whatever their json_name',
  ],
  [
    'a name whose first part is found in an inner scope',
    'message A { message B {} }\nmessage C { message A {}\n A.B x = 1; }',
    'A.B means C.A.B here, which is not declared; .A.B begins at the outermost scope',
  ],
  [
    'a name that begins at the outermost scope',
    'message A { message B {} }\nmessage C { message A {}\n .A.B x = 1; }',
    undefined,
  ],
  ['a field with the name of a type', 'message A { int32 B = 1; B x = 2; }\nmessage B {}', undefined],
  [
    'a method with the name of a type',
    'message A {}\nservice S { rpc A(.A) returns (A); }',
    'A is a method, not a message',
  ],
  [
    'a scalar instead of a message',
    'message A {}\nservice S { rpc Get(int32) returns (A); }',
    'int32 is a scalar type, not a message: wrap it in a message',
  ],
  ['a lazy number', 'message A { int32 a = 1 [lazy = true]; }', 'lazy is for messages only'],
  [
    'an undeclared option',
    'message A { int32 a = 1 [(x.y) = true]; }',
    'unknown option x.y: import the file that declares it',
  ],
  [
    'a field with the entry type of a map',
    'message A { map<int32, int32> foo = 1; FooEntry e = 2; }',
    'A.FooEntry belongs to a map: write map<…> for a map of your own',
  ],
  [
    "a repeated field with the entry type of another message's map",
    'message A { map<int32, int32> foo = 1; }\nmessage B { repeated A.FooEntry foo = 1; }',
    'A.FooEntry belongs to a map: write map<…> for a map of your own',
  ],
  [
    'allow_alias without an alias',
    'enum E { option allow_alias = true; A = 0; B = 1; }',
    'no two values of enum E have the same number: remove option allow_alias',
  ],
  ...(['./b.proto', 'd/../b.proto', 'd//b.proto', 'd/./b.proto'] as const).map((path): Rule => {
    return [`import "${path}"`, `import "${path}";`, 'the path of an import begins at an include directory'];
  }),
  [
    'an import with a backslash',
    'import "d\\\\b.proto";',
    'the path of an import has / between its parts, and no \\',
  ],
  [
    'features in proto3',
    'option features.enum_type = OPEN;',
    'features are for editions; this file is proto3',
  ],
];

describe.each([
  ['syntax = "proto2";', proto2],
  ['syntax = "proto3";', proto3],
])('%s', testRules);

test('a closed enum of another file is an error in proto3', async () => {
  const found = await diagnosticsOf({
    'a.proto': 'syntax = "proto3";\nimport "b.proto";\nmessage A { repeated E e = 1; }',
    'b.proto': 'syntax = "proto2";\nenum E { X = 1; }',
  });
  expect(found).toEqual(['a.proto:3:24: error: E is a closed enum, which proto3 does not have | e']);
});
