/**
 * Tests a bundler's output for an application that uses one of many messages of a generated file. The output
 * contains that message, and nothing that the application does not use.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { globSync } from 'tinyglobby';
import { describe, expect, test } from 'vitest';
import { projectDirectory } from './corpus.ts';

async function bundled(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: projectDirectory, loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'node',
    conditions: ['rdma-rpc-source'],
  });
  return outputFiles[0]?.text ?? '';
}

const use = `import { Optionals } from './test/codec/gen/everything.rdma.ts';
  console.log(Optionals.encode({}), Optionals.decode(new Uint8Array(0)));`;

test('a bundle has the used message and its dependencies, but no descriptor, JSON or well-known types', async () => {
  const text = await bundled(use);
  expect(text).toContain('corpus.everything.Optionals');
  expect(text).toContain('corpus.everything.Scalars'); // A field of the used message has this type.
  expect(text).not.toContain('corpus.everything.Maps');
  expect(text).not.toContain('google.protobuf.');
  expect(text).not.toContain('fileDescriptor');
  expect(text).not.toContain('ignoreUnknownFields');
  expect(text.length).toBeLessThan(26_000);
});

test('a bundle has no unused service', async () => {
  const text = await bundled(`import { Order } from './test/stream/gen/stream.rdma.ts';
    console.log(Order.encode({}));`);
  expect(text).toContain('test.stream.Order');
  expect(text).not.toContain('test.stream.Streams');
  expect(text).not.toContain('requestSerialize');
});

test('a bundle has JSON when the application imports it', async () => {
  const text = await bundled(`${use}
    import { toJson } from 'rdma-rpc/json';
    console.log(toJson(Optionals, {}));`);
  expect(text).toContain('google.protobuf.Timestamp');
});

describe('MessagePack', () => {
  const marks = ['msgpackForm', 'useRecords', 'cannot travel as MessagePack'];

  test('is absent for a message of a file whose services prefer it', async () => {
    const text = await bundled(`import { Entry } from './test/msgpack/gen/ledger.rdma.ts';
      console.log(Entry.encode({}));`);
    expect(text).toContain('test.ledger.Entry');
    for (const mark of marks) expect(text).not.toContain(mark);
  });

  test('is not loaded by files whose methods do not prefer it', () => {
    for (const path of globSync('**/gen/**/*.rdma.ts', {
      cwd: projectDirectory,
      // Leaves out folders that other tests create and remove at the same time; mkdtemp(3) adds six
      // characters to their names.
      ignore: ['**/node_modules/**', '**/gen/*-??????/**'],
    })) {
      const text = readFileSync(join(projectDirectory, path), 'utf8');
      expect(text.includes("from 'rdma-rpc/msgpack'"), path).toBe(text.includes("preferredCodec: 'MSGPACK'"));
    }
  });

  test('is included for a service that prefers it', async () => {
    const text = await bundled(`import { LedgerDefinition } from './test/msgpack/gen/ledger.rdma.ts';
      console.log(LedgerDefinition);`);
    for (const mark of marks.slice(1)) expect(text).toContain(mark);
  });
});
