/** What the language allows and what it does not: each rule with a file that keeps it and one that breaks it, of which protoc (where its version knows the syntax) and buf say the same. */
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { needs } from '../needs.ts';
import { diagnosticsOf, workspace } from './workspace.ts';

/** Of one file after its syntax: what is wrong with it, undefined when nothing is. */
type Rule = [what: string, body: string, wrong: string | undefined];

const proto2: Rule[] = [
  [
    'extension ranges that meet',
    'message A { extensions 1 to 5, 5 to 9; }',
    'extension range 5 to 9 overlaps extension range 1 to 5',
  ],
  ['extension ranges side by side', 'message A { extensions 1 to 5, 6 to 9; extensions 10; }', undefined],
  [
    'one inside of another',
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
  ['reserving 0', 'message A { reserved 0; }', '0 to 0 is no range of field numbers (1 to 536870911)'],
  ['values that are alike without their prefix', 'enum Kind { KIND_X = 0; X = 1; }', undefined],
  [
    'names that are alike in JSON',
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
    'a number as in C',
    'message A { optional float a = 1 [default = 1.5f]; }',
    '1.5f is neither a number nor a name',
  ],
  ['a float in hexadecimal', 'message A { optional float a = 1 [default = 0x1f]; }', undefined],
  [
    '-0 without a sign to have',
    'message A { optional uint32 a = 1 [default = -0]; }',
    'the default of this field is a whole number from 0 to 4294967295',
  ],
  ['-0 of an integer with a sign', 'message A { optional int32 a = 1 [default = -0]; }', undefined],
  [
    'a name in JSON for an extension',
    'message A { extensions 4; } extend A { optional int32 a = 4 [json_name = "b"]; }',
    'an extension has no json_name: in JSON it goes by its full name',
  ],
  [
    'the usual name in JSON for an extension',
    'message A { extensions 4; } extend A { optional int32 a_b = 4 [json_name = "aB"]; }',
    undefined,
  ],
  [
    'an extension that is what a map is made of',
    'message A { map<int32, int32> a = 1; extensions 4; } extend A { optional A.AEntry b = 4; }',
    'A.AEntry belongs to a map: write map<…> for a map of your own',
  ],
];

const proto3: Rule[] = [
  [
    'values that are alike without their prefix',
    'enum Kind { KIND_X = 0; X = 1; }',
    'KIND_X and X have the same name without the prefix Kind',
  ],
  [
    'the same with another way to write the prefix',
    'enum FooBar { FOOBAR_A_B = 0; FOO_BAR__a_b = 1; }',
    'FOOBAR_A_B and FOO_BAR__a_b have the same name without the prefix FooBar',
  ],
  ['two names of one value', 'enum Kind { option allow_alias = true; KIND_X = 0; X = 0; }', undefined],
  ['values that only differ in where words end', 'enum Kind { FOO_BAR = 0; FOOBAR = 1; }', undefined],
  [
    'a name that is only the prefix',
    'enum Kind { KIND = 0; KIND_ = 1; OTHER = 2; }',
    'KIND and KIND_ have the same name without the prefix Kind',
  ],
  [
    'names that are alike in JSON',
    'message A { int32 foo_bar = 1; int32 fooBar = 2; }',
    'foo_bar and fooBar are both called fooBar in JSON: give one a json_name of its own',
  ],
  [
    'names that a json_name keeps apart',
    'message A { int32 foo_bar = 1 [json_name = "x"]; int32 fooBar = 2; }',
    'foo_bar and fooBar would both be called fooBar in JSON, whatever their json_name',
  ],
  [
    'the innermost scope that knows the first part of a name',
    'message A { message B {} }\nmessage C { message A {}\n A.B x = 1; }',
    'A.B means C.A.B here, which is not declared; .A.B begins at the outermost scope',
  ],
  [
    'the same from the outermost scope',
    'message A { message B {} }\nmessage C { message A {}\n .A.B x = 1; }',
    undefined,
  ],
  ['a field on the way to a type', 'message A { int32 B = 1; B x = 2; }\nmessage B {}', undefined],
  [
    'a method on the way to a type',
    'message A {}\nservice S { rpc A(.A) returns (A); }',
    'A is a method, not a message',
  ],
  [
    'a scalar where a message has to be',
    'message A {}\nservice S { rpc Get(int32) returns (A); }',
    'int32 is a scalar type, not a message: wrap it in a message',
  ],
  ['lazy numbers', 'message A { int32 a = 1 [lazy = true]; }', 'lazy is for messages only'],
  [
    'an option that nobody declares',
    'message A { int32 a = 1 [(x.y) = true]; }',
    'unknown option x.y: import the file that declares it',
  ],
  [
    'a field that is what a map is made of',
    'message A { map<int32, int32> foo = 1; FooEntry e = 2; }',
    'A.FooEntry belongs to a map: write map<…> for a map of your own',
  ],
  [
    'a list of what a map is made of',
    'message A { map<int32, int32> foo = 1; }\nmessage B { repeated A.FooEntry foo = 1; }',
    'A.FooEntry belongs to a map: write map<…> for a map of your own',
  ],
  [
    'allow_alias for nothing',
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
  ['features', 'option features.enum_type = OPEN;', 'features are for editions; this file is proto3'],
];

const edition2023: Rule[] = [
  [
    'packing one value',
    'message A { int32 a = 1 [features.repeated_field_encoding = PACKED]; }',
    'repeated_field_encoding is for repeated fields only',
  ],
  [
    'packing text',
    'message A { repeated string a = 1 [features.repeated_field_encoding = PACKED]; }',
    'only repeated numbers can be packed',
  ],
  [
    'not packing text',
    'message A { repeated string a = 1 [features.repeated_field_encoding = EXPANDED]; }',
    undefined,
  ],
  [
    'text in numbers',
    'message A { int32 a = 1 [features.utf8_validation = NONE]; }',
    'utf8_validation is for strings only',
  ],
  ['text in a map', 'message A { map<int32, string> a = 1 [features.utf8_validation = NONE]; }', undefined],
  [
    'a number between tags',
    'message A { int32 a = 1 [features.message_encoding = DELIMITED]; }',
    'message_encoding is for messages only',
  ],
  [
    'a map between tags',
    'message A { map<int32, A> a = 1 [features.message_encoding = DELIMITED]; }',
    'message_encoding is for messages only',
  ],
  [
    'presence of a list',
    'message A { repeated int32 a = 1 [features.field_presence = EXPLICIT]; }',
    'a repeated field has no field_presence',
  ],
  [
    'presence in a oneof',
    'message A { oneof o { int32 a = 1 [features.field_presence = EXPLICIT]; } }',
    'a field of a oneof has no field_presence of its own',
  ],
  [
    'a message without presence',
    'message A { A a = 1 [features.field_presence = IMPLICIT]; }',
    'the presence of a message is never IMPLICIT',
  ],
  [
    'a closed enum without presence',
    'enum E { option features.enum_type = CLOSED; X = 1; }\nmessage A { E a = 1 [features.field_presence = IMPLICIT]; }',
    'E is a closed enum, which a field of implicit presence cannot hold',
  ],
  [
    'a closed enum with presence',
    'enum E { option features.enum_type = CLOSED; X = 1; }\nmessage A { E a = 1; repeated E b = 2 ; }',
    undefined,
  ],
  [
    'a file of required fields',
    'option features.field_presence = LEGACY_REQUIRED;\nmessage A { int32 a = 1; }',
    'a file cannot make all of its fields LEGACY_REQUIRED',
  ],
  [
    'packed as it was',
    'message A { repeated int32 a = 1 [packed = true]; }',
    'editions have no packed: write features.repeated_field_encoding',
  ],
  [
    'presence of an extension',
    'message A { extensions 1; }\nextend A { int32 a = 1 [features.field_presence = EXPLICIT]; }',
    'an extension has no field_presence of its own',
  ],
  [
    'names that are alike in JSON, as they always were',
    'message A { option features.json_format = LEGACY_BEST_EFFORT; int32 foo_bar = 1; int32 fooBar = 2; }',
    undefined,
  ],
];

const declared = (declaration: string, field: string): string =>
  `message A { extensions 4 to 9 [verification = DECLARATION${declaration}]; } extend A { ${field} }`;
const ofInt32 = ', declaration = { number: 4 full_name: ".b" type: "int32" }';
edition2023.push(
  ['an extension as it is declared', declared(ofInt32, 'int32 b = 4;'), undefined],
  [
    'a number that declares no extension',
    declared(ofInt32, 'int32 b = 5;'),
    'A declares no extension with number 5',
  ],
  [
    'an extension of another type than its declaration has',
    declared(ofInt32, 'string b = 4;'),
    'A declares extension number 4 with type int32, not string',
  ],
  [
    'an extension of another name than its declaration has',
    declared(ofInt32, 'int32 c = 4;'),
    'A declares extension number 4 as .b, not .c',
  ],
  [
    'a list that was declared as one value',
    declared(ofInt32, 'repeated int32 b = 4;'),
    'A declares extension number 4 as not repeated',
  ],
  [
    'a number that is reserved by its declaration',
    declared(', declaration = { number: 4 reserved: true }', 'int32 b = 4;'),
    'A reserves extension number 4',
  ],
  [
    'a message by its full name',
    declared(', declaration = { number: 4 full_name: ".b" type: ".A" }', 'A b = 4;'),
    undefined,
  ],
  [
    'Java’s check of UTF-8',
    'option java_string_check_utf8 = true;',
    'editions have no java_string_check_utf8: write features.(pb.java).utf8_validation',
  ],
  ['ctype', 'message A { string a = 1 [ctype = CORD]; }', undefined],
);
const forMessages = (use: string): string =>
  `import "google/protobuf/descriptor.proto"; message O { int32 x = 1 [targets = TARGET_TYPE_MESSAGE]; } extend google.protobuf.FieldOptions { O o = 50000; } extend google.protobuf.MessageOptions { O m = 50000; }\n${use}`;
edition2023.push(
  [
    'an option for messages on a field',
    forMessages('message A { int32 a = 1 [(o).x = 4]; }'),
    'option O.x cannot be set on a field',
  ],
  [
    'the same in braces',
    forMessages('message A { int32 a = 1 [(o) = { x: 4 }]; }'),
    'option O.x cannot be set on a field',
  ],
  ['an option for messages on a message', forMessages('message A { option (m).x = 4; }'), undefined],
);

const style = (what: string, name: string, wanted: string): string =>
  `the name of ${what} ${name} is not in ${wanted}, which this edition asks for`;
const styled: Rule[] = (
  [
    ['package', 'package %;', 'lower_snake_case', ['a.v1', 'a_b.c1'], ['A.v1', 'a__b', 'a_', '_a', 'a.v1_2']],
    ['message', 'message % {}', 'TitleCase', ['Foo', 'FOO', 'F1oo'], ['foo', 'Foo_Bar', '_Foo', 'Foo_']],
    [
      'field',
      'message M { int32 % = 1; }',
      'lower_snake_case',
      ['foo_bar1', 'f1_b'],
      ['Foo', 'fooBar', 'foo_1', 'foo__bar', '_foo', 'foo_', 'foo_1bar'],
    ],
    ['oneof', 'message M { oneof % { int32 x = 1; } }', 'lower_snake_case', ['foo_bar'], ['Foo', 'foo_1']],
    ['enum', 'enum % { A = 0; }', 'TitleCase', ['Foo'], ['foo_bar']],
    [
      'value',
      'enum E { % = 0; }',
      'UPPER_SNAKE_CASE',
      ['FOO_B1'],
      ['Foo', 'FOO_1', '_FOO', 'FOO_', 'FOO__A'],
    ],
    ['service', 'service % {}', 'TitleCase', ['Foo'], ['foo', 'Foo_Bar']],
    ['method', 'message M {} service S { rpc %(M) returns (M); }', 'TitleCase', ['Foo'], ['foo', 'Foo_Bar']],
    [
      'extension',
      'message M { extensions 4; } extend M { int32 % = 4; }',
      'lower_snake_case',
      ['foo'],
      ['Foo'],
    ],
  ] as const
).flatMap(([what, body, wanted, right, wrong]) => [
  ...right.map((name): Rule => [`${what} ${name}`, body.replace('%', name), undefined]),
  ...wrong.map((name): Rule => [`${what} ${name}`, body.replace('%', name), style(what, name, wanted)]),
]);
const legacy = 'features.enforce_naming_style = STYLE_LEGACY';
const edition2024: Rule[] = [
  ...styled,
  ['an older style in a file', `option ${legacy}; message foo { int32 Bar = 1; }`, undefined],
  ['an older style in a message', `message foo { option ${legacy}; int32 Bar = 1; }`, undefined],
  ['an older style of a field', `message Foo { int32 Bar = 1 [${legacy}]; }`, undefined],
  ['an older style of a value', `enum Foo { bar = 0 [${legacy}]; }`, undefined],
  ['an older style of a service', `service foo { option ${legacy}; }`, undefined],
  ['a map', 'message M { map<int32, int32> foo_bar = 1; }', undefined],
  ['ctype', 'message A { string a = 1 [ctype = CORD]; }', 'edition 2024 has no ctype'],
  ['java_multiple_files', 'option java_multiple_files = true;', 'edition 2024 has no java_multiple_files'],
  ['weak imports', 'import weak "google/protobuf/any.proto";', 'edition 2024 has no weak imports'],
  [
    'nothing but words',
    'message A { export message B {} message C {} local message D {} C c = 1; D d = 2; }',
    undefined,
  ],
  [
    'exports in messages',
    'option features.default_symbol_visibility = STRICT;\nmessage A { export message B {} }',
    'nothing in a message is for export where default_symbol_visibility is STRICT',
  ],
];

const byErrors = (all: readonly string[]) => all.filter((each) => each.includes(': error: '));

describe.each([
  ['syntax = "proto2";', proto2],
  ['syntax = "proto3";', proto3],
  ['edition = "2023";', edition2023],
  ['edition = "2024";', edition2024],
])('%s', (syntax, rules) => {
  test.each(rules)('%s: %s', async (_what, body, wrong) => {
    const found = byErrors(await diagnosticsOf({ 'a.proto': `${syntax}\n${body}` }));
    if (wrong === undefined) expect(found).toEqual([]);
    else {
      expect(found).toHaveLength(1);
      expect(found[0]).toContain(wrong);
      expect(found[0]).toMatch(/^a\.proto:[234]:\d+: error: /);
    }
  });

  if (!syntax.startsWith('syntax')) return; // protoc 3.21 does not know editions
  describe('protoc', () => {
    needs('protoc');

    test.each(rules)('of %s', (_what, body, wrong) => {
      const directory = workspace({ 'a.proto': `${syntax}\n${body}` });
      const { status, stderr } = spawnSync('protoc', ['-I.', '--descriptor_set_out=/dev/null', 'a.proto'], {
        cwd: directory,
        encoding: 'utf8',
      });
      expect(status === 0, stderr).toBe(wrong === undefined);
    });
  });
});

describe('types that are for their own file', () => {
  const user = (type: string) =>
    `edition = "2023";\nimport "b.proto";\nmessage A { ${type} x = 1; }\nmessage S { extensions 1; }`;
  const library = (options: string) =>
    `edition = "2024";\npackage b;\n${options}message Top { message In {} export message Out {} enum Kind { X = 0; } }\nlocal message Local {}\nexport message Global {}`;
  const all = 'option features.default_symbol_visibility = ';
  test.each([
    ['', 'b.Top', undefined],
    ['', 'b.Top.Out', undefined],
    ['', 'b.Top.In', 'types inside of others are local there unless they say export'],
    ['', 'b.Top.Kind', 'types inside of others are local there unless they say export'],
    ['', 'b.Local', 'it is local'],
    [`${all}LOCAL_ALL;\n`, 'b.Top', 'types are local there unless they say export'],
    [`${all}LOCAL_ALL;\n`, 'b.Global', undefined],
    [`${all}EXPORT_ALL;\n`, 'b.Top.In', undefined],
    [`${all}EXPORT_ALL;\n`, 'b.Local', 'it is local'],
  ])('%s%s', async (options, type, why) => {
    const found = byErrors(await diagnosticsOf({ 'a.proto': user(type), 'b.proto': library(options) }));
    expect(found).toEqual(
      why === undefined
        ? []
        : [`a.proto:3:13: error: ${type} is not visible outside of b.proto: ${why} | ${type}`],
    );
  });
});

test('what is imported for its options is no type', async () => {
  const found = await diagnosticsOf({
    'a.proto': 'edition = "2024";\nimport option "b.proto";\nmessage A { T t = 1; }',
    'b.proto': 'edition = "2024";\nexport message T {}',
  });
  expect(found).toEqual([
    'a.proto:3:13: error: T is declared in b.proto, which is imported for its options only: import it without the word option | T',
  ]);
});

test('a closed enum of another file in proto3', async () => {
  const found = await diagnosticsOf({
    'a.proto': 'syntax = "proto3";\nimport "b.proto";\nmessage A { repeated E e = 1; }',
    'b.proto': 'syntax = "proto2";\nenum E { X = 1; }',
  });
  expect(found).toEqual(['a.proto:3:24: error: E is a closed enum, which proto3 has not | e']);
});
