/**
 * Tests the rules of editions; rules.test.ts has the rules of proto2 and proto3. buf and newer versions of
 * protoc agree on each rule.
 */
import { describe, expect, test } from 'vitest';
import { byErrors, type Rule, testRules } from './rules.ts';
import { diagnosticsOf } from './workspace.ts';

const edition2023: Rule[] = [
  [
    'a packed field that is not repeated',
    'message A { int32 a = 1 [features.repeated_field_encoding = PACKED]; }',
    'repeated_field_encoding is for repeated fields only',
  ],
  [
    'packed strings',
    'message A { repeated string a = 1 [features.repeated_field_encoding = PACKED]; }',
    'only repeated numbers can be packed',
  ],
  [
    'strings that are explicitly not packed',
    'message A { repeated string a = 1 [features.repeated_field_encoding = EXPANDED]; }',
    undefined,
  ],
  [
    'UTF-8 validation of a number',
    'message A { int32 a = 1 [features.utf8_validation = NONE]; }',
    'utf8_validation is for strings only',
  ],
  [
    'UTF-8 validation of a map with strings',
    'message A { map<int32, string> a = 1 [features.utf8_validation = NONE]; }',
    undefined,
  ],
  [
    'delimited encoding of a number',
    'message A { int32 a = 1 [features.message_encoding = DELIMITED]; }',
    'message_encoding is for messages only',
  ],
  [
    'delimited encoding of a map',
    'message A { map<int32, A> a = 1 [features.message_encoding = DELIMITED]; }',
    'message_encoding is for messages only',
  ],
  [
    'presence of a repeated field',
    'message A { repeated int32 a = 1 [features.field_presence = EXPLICIT]; }',
    'a repeated field has no field_presence',
  ],
  [
    'presence of a field of a oneof',
    'message A { oneof o { int32 a = 1 [features.field_presence = EXPLICIT]; } }',
    'a field of a oneof has no field_presence of its own',
  ],
  [
    'a message field without presence',
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
    'a file whose fields are all required',
    'option features.field_presence = LEGACY_REQUIRED;\nmessage A { int32 a = 1; }',
    'a file cannot make all of its fields LEGACY_REQUIRED',
  ],
  [
    'the older option `packed`',
    'message A { repeated int32 a = 1 [packed = true]; }',
    'editions have no packed: write features.repeated_field_encoding',
  ],
  [
    'presence of an extension',
    'message A { extensions 1; }\nextend A { int32 a = 1 [features.field_presence = EXPLICIT]; }',
    'an extension has no field_presence of its own',
  ],
  [
    'fields with the same JSON name, allowed by LEGACY_BEST_EFFORT',
    'message A { option features.json_format = LEGACY_BEST_EFFORT; int32 foo_bar = 1; int32 fooBar = 2; }',
    undefined,
  ],
];

const declared = (declaration: string, field: string): string =>
  `message A { extensions 4 to 9 [verification = DECLARATION${declaration}]; } extend A { ${field} }`;
const ofInt32 = ', declaration = { number: 4 full_name: ".b" type: "int32" }';
edition2023.push(
  ['an extension that matches its declaration', declared(ofInt32, 'int32 b = 4;'), undefined],
  [
    'an extension number without a declaration',
    declared(ofInt32, 'int32 b = 5;'),
    'A declares no extension with number 5',
  ],
  [
    'an extension whose type differs from its declaration',
    declared(ofInt32, 'string b = 4;'),
    'A declares extension number 4 with type int32, not string',
  ],
  [
    'an extension whose name differs from its declaration',
    declared(ofInt32, 'int32 c = 4;'),
    'A declares extension number 4 as .b, not .c',
  ],
  [
    'a repeated extension that is declared as a single value',
    declared(ofInt32, 'repeated int32 b = 4;'),
    'A declares extension number 4 as not repeated',
  ],
  [
    'a number that is reserved by its declaration',
    declared(', declaration = { number: 4 reserved: true }', 'int32 b = 4;'),
    'A reserves extension number 4',
  ],
  [
    'an extension whose declaration names a message',
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
    'an option for messages on a field, in braces',
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
    'visibility keywords in messages',
    'message A { export message B {} message C {} local message D {} C c = 1; D d = 2; }',
    undefined,
  ],
  [
    'an exported nested message under STRICT visibility',
    'option features.default_symbol_visibility = STRICT;\nmessage A { export message B {} }',
    'nothing in a message is for export where default_symbol_visibility is STRICT',
  ],
];

describe.each([
  ['edition = "2023";', edition2023],
  ['edition = "2024";', edition2024],
])('%s', testRules);

describe('types that are local to their file', () => {
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

test('a file imported for its options provides no type', async () => {
  const found = await diagnosticsOf({
    'a.proto': 'edition = "2024";\nimport option "b.proto";\nmessage A { T t = 1; }',
    'b.proto': 'edition = "2024";\nexport message T {}',
  });
  expect(found).toEqual([
    'a.proto:3:13: error: T is declared in b.proto, which is imported for its options only: import it without the word option | T',
  ]);
});
