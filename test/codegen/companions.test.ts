/** Tests files that every compiler contains, and outdated files in the output directory. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CodeGeneratorRequest, CodeGeneratorResponse } from '../../codegen/descriptor/descriptor.rdma.ts';
import { generate } from '../../codegen/index.ts';
import { loadFiles } from '../../codegen/load.ts';
import { runPlugin } from '../../codegen/plugin.ts';
import { proto3, workspace } from './workspace.ts';

/** Passes all files as descriptors and requests only the user's own, as buf does. */
function pluginOutputs(files: Readonly<Record<string, string>>, asked: string[]): string[] {
  const directory = workspace(files);
  const paths = Object.keys(files).map((path) => join(directory, path));
  const { schema } = loadFiles(paths, [directory], false);
  const protoFile = [...schema.files.values()].map(({ descriptor }) => descriptor);
  const { response } = runPlugin(CodeGeneratorRequest.encode({ fileToGenerate: asked, protoFile }));
  const { file, error } = CodeGeneratorResponse.decode(response);
  expect(error ?? '').toBe('');
  return file.map(({ name }) => name ?? '').sort();
}

const google = 'google/protobuf';

describe("a compiler's request also generates the built-in files that its files import", () => {
  test.each([
    ['api', 'google.protobuf.Api', ['api', 'source_context', 'type']],
    ['type', 'google.protobuf.Type', ['source_context', 'type']],
    ['source_context', 'google.protobuf.SourceContext', ['source_context']],
    ['descriptor', 'google.protobuf.FileDescriptorProto', ['descriptor']],
    ['compiler/plugin', 'google.protobuf.compiler.CodeGeneratorRequest', ['compiler/plugin', 'descriptor']],
    ['go_features', 'pb.GoFeatures', ['go_features']],
    ['java_features', 'pb.JavaFeatures', ['java_features']],
    ['cpp_features', 'pb.CppFeatures', ['cpp_features']],
    ['timestamp', 'google.protobuf.Timestamp', []],
  ])('%s', (name, type, made) => {
    const text = proto3(`import "${google}/${name}.proto";\nmessage A { ${type} x = 1; }`);
    const found = pluginOutputs({ 'a.proto': text }, ['a.proto']);
    expect(found).toEqual(['a.rdma.ts', ...made.map((each) => `${google}/${each}.rdma.ts`)].sort());
  });

  test('features that are options import their file', () => {
    const text = `edition = "2023";\nimport "${google}/go_features.proto";\noption features.(pb.go).api_level = API_OPAQUE;\nmessage A {}`;
    expect(pluginOutputs({ 'a.proto': text }, ['a.proto'])).toEqual([
      'a.rdma.ts',
      `${google}/go_features.rdma.ts`,
    ]);
  });

  test('options alone need no generated file', () => {
    const files = {
      'a.proto':
        'edition = "2024";\nimport option "b.proto";\nmessage A { int32 x = 1 [(b.note).text = "x"]; }',
      'b.proto': `syntax = "proto3";\npackage b;\nimport "${google}/descriptor.proto";\nmessage Note { string text = 1; google.protobuf.FieldOptions more = 2; }\nextend google.protobuf.FieldOptions { Note note = 50001; }`,
    };
    expect(pluginOutputs(files, ['a.proto'])).toEqual(['a.rdma.ts']);
  });
});

describe('outdated files', () => {
  const files = { 'proto/a.proto': proto3('message A {}'), 'proto/dir/b.proto': proto3('message B {}') };
  test('are those whose .proto is gone, and those of the other target', async () => {
    const directory = workspace(files);
    const out = join(directory, 'out');
    const options = { include: [join(directory, 'proto')], out };
    const all = ['a.proto', 'dir/b.proto'].map((path) => join(directory, 'proto', path));
    expect((await generate({ ...options, files: all })).stale).toEqual([]);
    // The generator runs a second time for the same directory.
    expect((await generate({ ...options, files: all.slice(0, 1), check: true })).stale).toEqual([]);
    const text = readFileSync(join(out, 'a.rdma.ts'), 'utf8');
    writeFileSync(join(out, 'gone.rdma.ts'), text.replace('from a.proto', 'from gone.proto'));
    writeFileSync(join(out, 'mine.rdma.ts'), 'export {};\n');
    writeFileSync(join(out, '.dot.rdma.ts'), text.replace('from a.proto', 'from .dot.proto'));
    expect((await generate({ ...options, files: all, check: true })).stale).toEqual([
      join(out, '.dot.rdma.ts'),
      join(out, 'gone.rdma.ts'),
    ]);
    rmSync(join(out, '.dot.rdma.ts'));
    // Another run has generated these files, from a .proto of this package or of another package.
    mkdirSync(join(out, 'rdma_rpc'));
    writeFileSync(
      join(out, 'rdma_rpc/options.rdma.ts'),
      text.replace('from a.proto', 'from rdma_rpc/options.proto'),
    );
    mkdirSync(join(out, 'buf/validate'), { recursive: true });
    const rules = text.replace('from a.proto', 'from buf/validate/validate.proto');
    writeFileSync(join(out, 'buf/validate/validate.rdma.ts'), rules);
    const again = await generate({ ...options, files: all, check: true });
    expect(again.stale).toEqual([join(out, 'gone.rdma.ts')]);
    const other = await generate({ ...options, files: all, target: 'js' });
    expect(other.stale).toEqual(
      ['a.rdma.ts', 'dir/b.rdma.ts', 'gone.rdma.ts'].map((each) => join(out, each)),
    );
  });
});
