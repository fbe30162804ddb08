/**
 * Tests editions through the plugin. This machine's protoc may be older than the editions, so the test builds
 * the requests. Descriptors of our parser are read and written again by protobuf-es, which supports editions
 * independently, and go into a CodeGeneratorRequest of protobuf-es.
 */

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  CodeGeneratorRequestSchema,
  CodeGeneratorResponseSchema,
  Edition,
  type FileDescriptorProto as EsFile,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { FileDescriptorProto } from '../../codegen/descriptor/descriptor.rdma.ts';
import { generate } from '../../codegen/index.ts';
import type { SchemaFile } from '../../codegen/link/schema.ts';
import { loadFiles } from '../../codegen/load.ts';
import { runPlugin } from '../../codegen/plugin.ts';
import { workspace } from './workspace.ts';

const include = join(dirname(fileURLToPath(import.meta.url)), 'protos');

/** Returns the positions and comments of a file, as in a descriptor. */
function sourceCodeInfo({ locations }: SchemaFile): FileDescriptorProto['sourceCodeInfo'] {
  const location = [...locations].map(([path, { token, leading, trailing }]) => ({
    path: path === '' ? [] : path.split(',').map(Number),
    span: [token.line - 1, token.column - 1, token.column - 1 + token.text.length],
    leadingComments: leading,
    trailingComments: trailing,
    leadingDetachedComments: [],
  }));
  return { location } as FileDescriptorProto['sourceCodeInfo'];
}

/** Returns the request that protoc would pass for `paths`. */
function filesOf(directory: string, paths: readonly string[]): EsFile[] {
  const files = paths.map((path) => join(directory, path));
  const { schema } = loadFiles(files, [directory], false);
  return [...schema.files.values()].map((file) =>
    fromBinary(
      FileDescriptorProtoSchema,
      FileDescriptorProto.encode({ ...file.descriptor, sourceCodeInfo: sourceCodeInfo(file) }),
    ),
  );
}

function run(protoFile: EsFile[], fileToGenerate: string[], parameter = '') {
  const request = create(CodeGeneratorRequestSchema, { protoFile, fileToGenerate, parameter });
  const { response } = runPlugin(toBinary(CodeGeneratorRequestSchema, request));
  return fromBinary(CodeGeneratorResponseSchema, response);
}

describe.each([
  ['edition.proto', Edition.EDITION_2023],
  ['edition2024.proto', Edition.EDITION_2024],
])('%s', (path, edition) => {
  const files = filesOf(include, [path]);

  test('has a descriptor that protobuf-es accepts for that edition, with its features', () => {
    const file = files.find(({ name }) => name === path);
    expect(file).toMatchObject({ syntax: 'editions', edition });
    expect(file?.$unknown ?? []).toEqual([]);
  });

  test('gives the same output as the command line, byte for byte', async () => {
    const { error, file } = run(files, [path]);
    expect(error).toBe('');
    const { outputs } = await generate({ files: [join(include, path)], include: [include] });
    const output = outputs.find((each) => `${each.path}` === path.replace('.proto', '.rdma.ts'));
    expect(file.map(({ name }) => name)).toEqual([output?.path]);
    expect(file[0]?.content).toBe(output?.text);
  });
});

test('the response lists the supported editions', () => {
  expect(run([], [])).toMatchObject({
    // FEATURE_PROTO3_OPTIONAL and FEATURE_SUPPORTS_EDITIONS.
    supportedFeatures: 3n,
    minimumEdition: Edition.EDITION_PROTO2,
    maximumEdition: 1002,
  });
});

test('an unknown edition is an error from any program', () => {
  const [file] = filesOf(include, ['edition.proto']).filter(({ name }) => name === 'edition.proto');
  const { error } = run([{ ...(file as EsFile), edition: 2000 as Edition }], ['edition.proto']);
  expect(error).toBe('edition.proto: error: edition number 2000 is not supported, only 2023, 2024, 2026');
});

test('features of files, messages, fields and enums are applied', async () => {
  const directory = workspace({
    'a.proto': `edition = "2023";
package t;
option features.field_presence = IMPLICIT;
option features.repeated_field_encoding = EXPANDED;
message A {
  option features.json_format = LEGACY_BEST_EFFORT;
  int32 none = 1;
  int32 some = 2 [features.field_presence = EXPLICIT];
  repeated int32 list = 3;
  repeated int32 packed = 4 [features.repeated_field_encoding = PACKED];
  A group = 5 [features.message_encoding = DELIMITED];
  enum E { option features.enum_type = CLOSED; X = 1; }
}
`,
  });
  const { file } = run(filesOf(directory, ['a.proto']), ['a.proto']);
  const text = file[0]?.content ?? '';
  expect(text).toContain('\n  none: number;\n  some?: number | undefined;\n');
  const { outputs } = await generate({ files: [join(directory, 'a.proto')], include: [directory] });
  expect(text).toBe(outputs[0]?.text);
});
