/**
 * Tests rare input, valid or nearly valid. Each input gives either a result, or an error that names the
 * invalid input.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StringValue } from 'rdma-rpc/codec';
import { fromJson } from 'rdma-rpc/json';
import { fromText } from 'rdma-rpc/text';
import { describe, expect, test } from 'vitest';
import { generate } from '../../codegen/index.ts';
import { Scalars } from '../codec/gen/everything.rdma.ts';
import { diagnosticsOf, outputOf, proto3, workspace } from './workspace.ts';

describe('a file in UTF-16 is read', () => {
  test.each([
    ['little-endian, with its mark', Buffer.from(`\ufeff${proto3('')}`, 'utf16le')],
    ['little-endian', Buffer.from(proto3(''), 'utf16le')],
    ['big-endian', Buffer.from(`\ufeff${proto3('')}`, 'utf16le').swap16()],
  ])('%s', async (_, bytes) => {
    const directory = workspace({});
    const file = join(directory, 'a.proto');
    writeFileSync(file, bytes);
    await expect(generate({ files: [file] })).rejects.toThrow(
      /a\.proto: error: cannot be read: it is UTF-16 text: save it as UTF-8$/,
    );
  });
});

test('an import with a name that no file system allows is an error', async () => {
  const [found = ''] = await diagnosticsOf({ 'a.proto': proto3(`import "${'x'.repeat(5000)}.proto";`) });
  expect(found).toMatch(/^a\.proto:3:8: error: import "x+… was not found in /);
});

test('maps whose entries would have the same name are an error', async () => {
  const body = 'message A {\n  map<int32, int32> foo_bar = 1;\n  map<int32, int32> FooBar = 2;\n}';
  const [found] = await diagnosticsOf({ 'a.proto': proto3(body) });
  expect(found).toMatch(
    /^a\.proto:5:\d+: error: a map needs the name t\.A\.FooBarEntry for its entries, which is declared twice in this file: rename the field \|/,
  );
});

test('two public imports with the same name cause a warning', async () => {
  const message = (name: string) => `syntax = "proto3";\npackage ${name};\nmessage M {}`;
  const found = await diagnosticsOf({
    'a.proto': 'syntax = "proto3";\nimport public "b.proto";\nimport public "c.proto";',
    'b.proto': message('b'),
    'c.proto': message('c'),
  });
  expect(found).toEqual(
    ['M', 'MInit'].map(
      (name) =>
        `a.proto: warning: b.proto and c.proto, both imported publicly, have the name ${name}: import it from its own module | `,
    ),
  );
});

describe('comments in the value of an option are ignored', () => {
  const file = (comment: string) => `syntax = "proto2";
import "google/protobuf/descriptor.proto";
message O { optional int32 i = 1; optional O o = 2; }
extend google.protobuf.FieldOptions { optional O o = 50000; }
message M { optional int32 a = 1 [(o) = { i: 1 ${comment} o { i: 2 ${comment} } }]; }
`;
  test.each(['# } "\n', '// } "\n', '/* } " */'])('%j', async (comment) => {
    expect(await outputOf({ 'a.proto': file(comment) })).toContain("'o': { 'i': 1, 'o': { 'i': 2 } }");
  });

  test('a # elsewhere does not start a comment', async () => {
    const [found] = await diagnosticsOf({ 'a.proto': proto3('# comment') });
    expect(found).toMatch(/^a\.proto:3:1: error: a \.proto has no "#" here/);
  });
});

test('messages may be nested 31 levels deep, as in protoc and buf', async () => {
  const nested = (depth: number) =>
    proto3(`${Array.from({ length: depth }, (_, i) => `message M${i} {`).join('')}${'}'.repeat(depth)}`);
  expect(await diagnosticsOf({ 'a.proto': nested(31) })).toEqual([]);
  expect((await diagnosticsOf({ 'a.proto': nested(32) }))[0]).toContain(
    'messages are nested more than 31 deep',
  );
});

describe('errors about names of 100 kB are short', () => {
  const long = 'x'.repeat(100_000);
  test.each<[string, () => unknown]>([
    ['a member in JSON', () => fromJson(Scalars, { [long]: 1 })],
    ['a field in text format', () => fromText(StringValue, `${long}: 1`)],
  ])('%s', (_, read) => {
    let message = '';
    try {
      read();
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).not.toBe('');
    expect(message.length).toBeLessThan(1500);
  });
});
