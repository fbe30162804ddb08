/**
 * Tests names that differ in a .proto but would be equal in TypeScript or in JSON. The generator gives each
 * of them a different name, and no value is lost in any format.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MessageType } from 'rdma-rpc/codec';
import { fromJson, toJson } from 'rdma-rpc/json';
import { describe, expect, onTestFinished, test } from 'vitest';
import { generate } from '../../codegen/index.ts';
import { keysFor, methodName, propertyName } from '../../codegen/model/names.ts';
import { diagnosticsOf } from './workspace.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

async function load(text: string): Promise<{ readonly [name: string]: unknown }> {
  mkdirSync(join(root, 'gen'), { recursive: true });
  const directory = mkdtempSync(join(root, 'gen', 'clashes-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  writeFileSync(join(directory, 'a.proto'), text);
  await generate({ files: [join(directory, 'a.proto')], out: directory });
  return (await import(join(directory, 'a.rdma.ts'))) as { readonly [name: string]: unknown };
}

test.each<[string[], string[]]>([
  [
    ['foo_bar', 'fooBar'],
    ['foo_bar$', 'fooBar'],
  ],
  [
    ['fooBar', 'foo_bar'],
    ['fooBar', 'foo_bar$'],
  ],
  [
    ['a', 'A'],
    ['a', 'A$'],
  ],
  [
    ['A', '_a', 'a_'],
    ['a', '_a$', 'a_$'],
  ],
  [
    ['value', '_value'],
    ['value', '_value$'],
  ],
  [
    ['constructor', 'Constructor', '_constructor'],
    ['constructor$', 'Constructor$', '_constructor$'],
  ],
  [
    ['_1a', '__1a'],
    ['$1a', '__1a$'],
  ],
  [
    ['_', '__'],
    ['$', '__$'],
  ],
])('the fields %j get different properties', (names, keys) => {
  expect([...keysFor(names, propertyName).values()]).toEqual(keys);
});

test('methods get different names', () => {
  expect([...keysFor(['GetFoo', 'getFoo', 'then', 'Then'], methodName).values()]).toEqual([
    'GetFoo$',
    'getFoo',
    'then$',
    'Then$',
  ]);
});

describe('a file with many such names', () => {
  const text = `syntax = "proto2";
message All {
  optional int32 foo_bar = 1;
  optional int32 fooBar = 2;
  optional int32 Foo_bar = 3;
  optional int32 a = 4;
  optional int32 A = 5;
  oneof _value { int32 x = 6; int32 X = 7; }
  optional int32 value = 8;
  repeated int32 _foo_bar = 9;
}
service Calls { rpc GetFoo(All) returns (All); rpc getFoo(All) returns (All); }`;

  test('every field keeps its value in binary and in JSON', async () => {
    const module = await load(text);
    const All = module.All as MessageType<object, object>;
    const init = {
      foo_bar$: 1,
      fooBar: 2,
      Foo_bar$: 3,
      a: 4,
      A$: 5,
      _value$: { case: 'X$', value: 7 },
      value: 8,
      _foo_bar$: [9],
    };
    const message = All.create(init);
    expect({ ...All.decode(All.encode(message)) }).toEqual(init);
    const json = toJson(All, message);
    expect(json).toEqual({ foo_bar: 1, fooBar: 2, FooBar: 3, a: 4, A: 5, X: 7, value: 8, _foo_bar: [9] });
    expect(fromJson(All, json)).toEqual(message);
    expect(Object.keys((module.CallsDefinition as { methods: object }).methods)).toEqual([
      'GetFoo$',
      'getFoo',
    ]);
  });

  test('warns of fields that get another name in JSON', async () => {
    expect(await diagnosticsOf({ 'a.proto': text })).toEqual([
      'a.proto:4:18: warning: foo_bar and fooBar are both called fooBar in JSON: one goes by its own name there | fooBar',
      'a.proto:10:18: warning: Foo_bar and _foo_bar are both called FooBar in JSON: one goes by its own name there | _foo_bar',
    ]);
  });
});

test('a json_name that another field has is an error', async () => {
  const file = (fields: string) => ({ 'a.proto': `syntax = "proto2";\nmessage A { ${fields} }` });
  expect(await diagnosticsOf(file('optional int32 a = 1 [json_name = "b"]; optional int32 b = 2;'))).toEqual([
    'a.proto:2:68: error: a and b are both called b in JSON: give one a json_name of its own | b',
  ]);
});
