/**
 * Tests the descriptor in each generated file: it equals the descriptor that protoc makes of the same .proto,
 * and the runtime returns it.
 */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import { describe, expect, test } from 'vitest';
import { FileDescriptorProto } from '../../codegen/descriptor/descriptor.rdma.ts';
import { generate } from '../../codegen/index.ts';
import { loadFiles } from '../../codegen/load.ts';
import { file_google_protobuf_timestamp_proto as timestamp } from '../../runtime/codec/index.ts';
import { DocsDefinition, file_documented_proto as documented } from '../codec/gen/documented.rdma.ts';
import { needs } from '../needs.ts';
import { comparable, protocDescriptors } from './descriptors.ts';
import { workspace } from './workspace.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

describe('in generated code', () => {
  test('a service has the descriptor of its file, which has those of its imports', () => {
    expect(DocsDefinition.file).toBe(documented);
    expect(documented.name).toBe('documented.proto');
    expect(documented.dependencies.map(({ name }) => name)).toContain('public/facade.proto');
    expect(FileDescriptorProto.decode(documented.bytes).service.map(({ name }) => name)).toContain('Docs');
  });

  test('well-known types have their descriptors', () => {
    expect(timestamp.name).toBe('google/protobuf/timestamp.proto');
    expect(FileDescriptorProto.decode(timestamp.bytes).syntax).toBe('proto3');
  });

  test("descriptor.rdma.ts of the generator equals the generator's output for its .proto", async () => {
    const include = join(root, 'codegen/descriptor');
    const { outputs } = await generate({
      files: [join(include, 'descriptor.proto')],
      include: [include],
      codecModule: '../../runtime/codec/primitives/index.ts',
    });
    await expect(outputs[0]?.text).toMatchFileSnapshot(join(include, 'descriptor.rdma.ts'));
  });
});

/** Every feature of the language, in one small file. */
const language = `syntax = "proto2";
package lang;
import "google/protobuf/descriptor.proto";
option java_package = "a.b\\n\\"c\\"";
extend google.protobuf.FieldOptions {
  optional Rule rule = 50001;
  repeated int32 many = 50002;
}
extend google.protobuf.EnumValueOptions { optional string label = 50003; }
message Rule {
  optional int32 least = 1;
  repeated string words = 2;
  optional Rule inner = 3;
  optional group Grouped = 4 { optional bool yes = 1; }
  map<string, int64> limits = 5;
  extensions 100 to 199, 1000 to max;
}
extend Rule { optional double ratio = 100; }
message All {
  required int32 a = 1 [default = -0x10];
  optional int64 b = 2 [default = 9223372036854775807];
  optional bytes c = 3 [default = "a\\xff\\001\\"'"];
  optional string d = 4 [default = "d\\u00e9" "f"];
  optional float e = 5 [default = 1e20];
  optional double f = 6 [default = -inf];
  optional Level g = 7 [default = HIGH];
  optional bool h = 8 [default = true, deprecated = true, json_name = "hh"];
  repeated fixed32 i = 9 [packed = true, (rule) = { least: 1, words: ["x", "y"] inner { least: -2 [lang.ratio]: 0.5 } Grouped { yes: true } limits { key: "k" value: 5 } }];
  repeated group Part = 10 { required string name = 1; }
  optional int32 j = 11 [(rule).least = 3, (rule).inner.least = 4, (many) = 1, (many) = 2];
  oneof choice { string k = 12; All l = 13; }
  reserved 20, 30 to 40;
  reserved "old", "older";
  enum Level { option allow_alias = true; LOW = 0; HIGH = 5; TOP = 5 [(label) = "top"]; BELOW = -1; reserved 7 to 9; }
}
service Svc {
  rpc Get(All) returns (stream lang.All) { option idempotency_level = NO_SIDE_EFFECTS; }
  rpc Put(stream .lang.All) returns (Rule);
  rpc Braces(All) returns (Rule) {}
  rpc Semicolon(All) returns (Rule) { ; }
}
`;

describe('a descriptor equals the one of protoc', () => {
  needs('protoc');

  test.each([
    ['for every feature of the language', { 'a.proto': language }],
    [
      'proto3',
      {
        'a.proto':
          'syntax = "proto3";\\nmessage A { optional int32 x = 1; optional string _y = 2; A a = 3; oneof o { int32 z = 4; } optional int32 X_x = 5; }'.replace(
            '\\n',
            '\n',
          ),
      },
    ],
  ])('%s', (_what, files) => {
    const directory = workspace(files);
    const { schema, diagnostics } = loadFiles([join(directory, 'a.proto')], [directory], false);
    expect(diagnostics).toEqual([]);
    for (const [path, theirs] of protocDescriptors([directory, '/usr/include'], ['a.proto'])) {
      if (path === 'a.proto')
        expect(comparable(schema, schema.files.get(path)?.descriptor)).toEqual(comparable(schema, theirs));
    }
  });

  test('for the well-known types', () => {
    const include = join(root, 'proto');
    const paths = globSync('google/protobuf/*.proto', { cwd: include });
    const { schema } = loadFiles(
      paths.map((path) => join(include, path)),
      [include],
      false,
    );
    for (const [path, theirs] of protocDescriptors([include], paths))
      expect(comparable(schema, schema.files.get(path)?.descriptor)).toEqual(comparable(schema, theirs));
  });
});
