/**
 * Tests protoc-gen-rdma-rpc under the real protoc: the same files as from the command line, and errors that
 * protoc prints.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, closeSync, constants, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import { describe, expect, test } from 'vitest';
import { CodeGeneratorRequest, CodeGeneratorResponse } from '../../codegen/descriptor/descriptor.rdma.ts';
import { generate } from '../../codegen/index.ts';
import { runPlugin } from '../../codegen/plugin.ts';
import { needs } from '../needs.ts';
import { proto3, workspace } from './workspace.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Runs protoc with the built plugin. */
function protoc(directory: string, parameter: string, include: readonly string[], paths: readonly string[]) {
  const plugin = join(directory, 'protoc-gen-rdma-rpc');
  writeFileSync(plugin, `#!/bin/sh\nexec ${process.execPath} ${join(root, 'dist/cli/protoc-gen.js')}\n`);
  chmodSync(plugin, 0o755);
  mkdirSync(join(directory, 'out'));
  const out = `--rdma-rpc_out=${parameter}${parameter === '' ? '' : ':'}${join(directory, 'out')}`;
  const flags = [`--plugin=${plugin}`, out, ...include.map((each) => `-I${each}`)];
  return spawnSync('protoc', [...flags, ...paths], { encoding: 'utf8' });
}

describe('the plugin under protoc', () => {
  needs('protoc');

  const include = join(root, 'test/codegen/protos');
  /** Editions may be newer than this machine's protoc. */
  const paths = globSync('**/*.proto', { cwd: include })
    .filter((path) => !path.includes('edition'))
    .sort();

  test.each([
    ['', {}],
    ['import_extension=js,unknown_fields=keep', { importExtension: 'js', unknownFields: 'keep' } as const],
    ['int64=string', { int64: 'string' } as const],
    ['target=js', { target: 'js' } as const],
  ])('gives the same output as the command line, byte for byte: %j', async (parameter, options) => {
    const directory = workspace({});
    const { status, stderr } = protoc(directory, parameter, [include, join(root, 'proto')], paths);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const { outputs } = await generate({
      files: paths.map((path) => join(include, path)),
      include: [include],
      ...options,
    });
    const endings = 'target' in options ? ['d.ts', 'js'] : ['ts'];
    const expected = paths.flatMap((path) =>
      endings.map((ending) => path.replace(/proto$/, `rdma.${ending}`)),
    );
    expect(globSync('**/*', { cwd: join(directory, 'out') }).sort()).toEqual(expected.sort());
    for (const path of expected) {
      const text = outputs.find((each) => each.path === path)?.text;
      expect(readFileSync(join(directory, 'out', path), 'utf8'), path).toBe(text);
    }
  });

  test('reports a file that cannot be generated, with the position', () => {
    const directory = workspace({
      'a.proto': proto3(
        'message A {}\nservice S {\n  rpc M562789(A) returns (A);\n  rpc M779192(A) returns (A);\n}',
      ),
    });
    const { status, stderr } = protoc(directory, '', [directory], ['a.proto']);
    expect(status).toBe(1);
    expect(stderr).toContain('a.proto:6:7: error: t.S/M779192 and t.S/M562789 have the same method id');
  });

  test.each([
    [
      'frobnicate=1',
      'frobnicate=1: unknown parameter or value; the parameters are target=ts|js, import_extension=ts|js|none, unknown_fields=keep|drop, int64=bigint|string|number and enums=open|closed',
    ],
    [
      'target=jsx',
      'target=jsx: unknown parameter or value; the parameters are target=ts|js, import_extension=ts|js|none, unknown_fields=keep|drop',
    ],
    ['int64=long', 'int64=long: unknown parameter or value; the parameters are target=ts|js'],
    [
      'target=js,import_extension=ts',
      'the target js imports .js; the import extension ts is for the target ts',
    ],
  ])('refuses the unknown parameter %s', (parameter, message) => {
    const directory = workspace({ 'a.proto': proto3('') });
    const { status, stderr } = protoc(directory, parameter, [directory], ['a.proto']);
    expect(status).toBe(1);
    expect(stderr).toContain(message);
  });
});

test('declares its features: proto3 optional and the editions', () => {
  const { response } = runPlugin(CodeGeneratorRequest.encode({}));
  expect(CodeGeneratorResponse.decode(response)).toMatchObject({
    supportedFeatures: 3n,
    minimumEdition: 998,
    maximumEdition: 1002,
  });
});

test('an invalid request ends with an exit code and a reason', () => {
  const result = spawnSync(process.execPath, [join(root, 'dist/cli/protoc-gen.js')], {
    input: 'no request',
    encoding: 'utf8',
  });
  expect(result.status).toBe(1);
  expect(result.stderr).toContain('CodecError');
});

test('the plugin reads a request from a non-blocking pipe, as buf provides it', async () => {
  const directory = workspace({});
  const fifo = join(directory, 'fifo');
  execFileSync('mkfifo', [fifo]);
  const stdin = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  const request = await open(fifo, 'w');
  const plugin = spawn(process.execPath, [join(root, 'dist/cli/protoc-gen.js')], {
    stdio: [stdin, 'pipe', 'pipe'],
  });
  closeSync(stdin);
  const ended = Promise.all([text(plugin.stderr as Readable), buffer(plugin.stdout as Readable)]);
  // The request is larger than a pipe can hold, so the plugin finds the pipe empty before it has read
  // everything.
  const name = 'x'.repeat(1_000_000);
  await request.writeFile(CodeGeneratorRequest.encode({ parameter: name }));
  await request.close();
  const [stderr, stdout] = await ended;
  expect(stderr).toBe('');
  // Compares without `expect`, because a failed assertion would print all of it.
  expect(
    CodeGeneratorResponse.decode(stdout).error?.startsWith(
      `${name}: unknown parameter or value; the parameters are `,
    ),
  ).toBe(true);
});
