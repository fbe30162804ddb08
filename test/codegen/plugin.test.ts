/** protoc-gen-rdma-rpc under the real protoc: the same files as from the command line, errors that protoc prints. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import { describe, expect, test } from 'vitest';
import { CodeGeneratorRequest, CodeGeneratorResponse } from '../../codegen/descriptor/descriptor.rdma.ts';
import { generate } from '../../codegen/index.ts';
import { runPlugin } from '../../codegen/plugin.ts';
import { noProtoc } from './descriptors.ts';
import { proto3, workspace } from './workspace.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Runs protoc with the plugin as it is built. */
function protoc(directory: string, parameter: string, include: readonly string[], paths: readonly string[]) {
  const plugin = join(directory, 'protoc-gen-rdma-rpc');
  writeFileSync(plugin, `#!/bin/sh\nexec ${process.execPath} ${join(root, 'dist/cli/protoc-gen.js')}\n`);
  chmodSync(plugin, 0o755);
  mkdirSync(join(directory, 'out'));
  const out = `--rdma-rpc_out=${parameter}${parameter === '' ? '' : ':'}${join(directory, 'out')}`;
  const flags = [`--plugin=${plugin}`, out, ...include.map((each) => `-I${each}`)];
  return spawnSync('protoc', [...flags, ...paths], { encoding: 'utf8' });
}

describe.skipIf(noProtoc !== '')('under protoc', () => {
  const include = join(root, 'test/codegen/protos');
  /** Editions are newer than the protoc of this machine may be. */
  const paths = globSync('**/*.proto', { cwd: include })
    .filter((path) => !path.includes('edition'))
    .sort();

  test.each([
    ['', {}],
    ['import_extension=js,unknown_fields=keep', { importExtension: 'js', unknownFields: 'keep' } as const],
  ])('byte for byte what the command line makes: %j', async (parameter, options) => {
    const directory = workspace({});
    const { status, stderr } = protoc(directory, parameter, [include, join(root, 'proto')], paths);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const { outputs } = await generate({
      files: paths.map((path) => join(include, path)),
      include: [include],
      ...options,
    });
    const asked = outputs.filter(({ path }) => paths.includes(path.replace('.rdma.ts', '.proto')));
    expect(asked.map(({ path }) => path).sort()).toEqual(
      paths.map((path) => path.replace('.proto', '.rdma.ts')).sort(),
    );
    for (const { path, text } of outputs) {
      if (asked.some((each) => each.path === path))
        expect(readFileSync(join(directory, 'out', path), 'utf8')).toBe(text);
    }
  });

  test('what TypeScript cannot have is an error with its place', () => {
    const directory = workspace({
      'a.proto': proto3(
        'message A {\n  int32 foo_bar = 1;\n  int32 fooBar2 = 2;\n}\nservice S {\n  rpc Get(A) returns (A);\n  rpc get(A) returns (A);\n}',
      ),
    });
    const { status, stderr } = protoc(directory, '', [directory], ['a.proto']);
    expect(status).toBe(1);
    expect(stderr).toContain('a.proto:9:7: error: methods Get and get both become get in TypeScript');
  });

  test('an unknown parameter', () => {
    const directory = workspace({ 'a.proto': proto3('') });
    const { status, stderr } = protoc(directory, 'frobnicate=1', [directory], ['a.proto']);
    expect(status).toBe(1);
    expect(stderr).toContain('frobnicate=1: there are import_extension=ts|js and unknown_fields=keep|drop');
  });
});

test.runIf(noProtoc !== '')(`not run: the plugin under protoc: ${noProtoc}`, () => {});

test('says what it supports: proto3 optional and the editions', () => {
  const { response } = runPlugin(CodeGeneratorRequest.encode({}));
  expect(CodeGeneratorResponse.decode(response)).toMatchObject({
    supportedFeatures: 3n,
    minimumEdition: 998,
    maximumEdition: 1002,
  });
});

test('a request that is none ends with an exit code and a reason', () => {
  const result = spawnSync(process.execPath, [join(root, 'dist/cli/protoc-gen.js')], {
    input: 'no request',
    encoding: 'utf8',
  });
  expect(result.status).toBe(1);
  expect(result.stderr).toContain('CodecError');
});
