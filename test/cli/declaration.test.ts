/**
 * Tests declarations as text. The printed form of every declaration of the test schemas must parse again and
 * declare the same, with its options and comments.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import {
  type DescFile,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  type FileRegistry,
  toJson,
} from '#protobuf';
import { declarationText } from '../../cli/server/schema/declaration.ts';
import { headText } from '../../cli/server/schema/declaration-file.ts';
import { fileRegistry } from '../../cli/server/schema/file-schema.ts';
import { lookUp } from '../../cli/server/schema/registry.ts';
import { root } from '../house/tree.ts';

const directory = mkdtempSync(join(tmpdir(), 'rdma-rpc-text-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const registryOf = (proto: string, include: readonly string[] = []): FileRegistry =>
  fileRegistry({ proto: [proto], include, protoset: [] });

function textOf(file: DescFile, registry: FileRegistry): string {
  // Extensions at the top level declare the messages of their groups at the top level too.
  const groups = new Set(
    file.extensions
      .filter((each) => each.proto.type === FieldDescriptorProto_Type.GROUP)
      .map((each) => each.message),
  );
  const declarations = [
    ...file.messages.filter((each) => !groups.has(each)),
    ...file.enums,
    ...file.extensions,
    ...file.services,
  ];
  const text = declarations.map((each) => declarationText(each, registry)).join('\n');
  return `${headText(file, registry, text)}\n${text}`;
}

/** Returns a descriptor without the options of the file and the positions of comments. */
function bare({ proto }: DescFile, registry: FileRegistry): object {
  const comments = proto.sourceCodeInfo?.location.map(({ leadingComments, trailingComments }) =>
    (leadingComments || trailingComments).replace(/^\s*\*? ?/gm, '').trim(),
  );
  const { options, sourceCodeInfo, ...rest } = toJson(FileDescriptorProtoSchema, proto, {
    registry,
  }) as { options?: object; sourceCodeInfo?: object };
  return { ...(byName(rest) as object), comments: comments?.sort() };
}

/**
 * The text has an order of its own: messages come before fields, and a group comes at the position of its
 * field.
 */
function byName(value: unknown): unknown {
  if (Array.isArray(value)) {
    const name = (each: unknown) => (each as { name?: string })?.name ?? '';
    return value.map(byName).sort((a, b) => (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : 0));
  }
  if (typeof value !== 'object' || value === null) return value;
  // Braces without options are an empty options message.
  const given = Object.entries(value).filter(([, each]) => JSON.stringify(each) !== '{}');
  return Object.fromEntries(given.map(([key, each]) => [key, byName(each)]));
}

const schemas = [
  'test/runtime/protos/echo.proto',
  'test/codec/protos/everything.proto',
  'test/codec/protos/well_known.proto',
  'test/codec/protos/documented.proto',
  'test/codegen/protos/proto2.proto',
  'test/codegen/protos/edition.proto',
  'test/codegen/protos/options.proto',
  'test/interop/protos/interop.proto',
];

test.each(schemas)('the printed form of %s declares the same', (path) => {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const registry = registryOf(join(root, path));
  const again = join(directory, name);
  mkdirSync(dirname(again), { recursive: true });
  const file = [...registry.files].find(({ proto }) => proto.name === name)!;
  writeFileSync(again, textOf(file, registry));
  const read = registryOf(again, [directory, dirname(join(root, path))]);
  const readFile = [...read.files].find(({ proto }) => proto.name === name)!;
  expect(bare(readFile, read)).toEqual(bare(file, registry));
});

test('options, reserved names and comments are printed in readable form', () => {
  const path = join(directory, 'shop.proto');
  writeFileSync(
    path,
    `syntax = "proto2";
package shop;
import "google/protobuf/descriptor.proto";
message Rule { optional int32 max = 1; repeated string tags = 2; optional Rule inner = 3; }
extend google.protobuf.FieldOptions { optional Rule rule = 50001; }
extend google.protobuf.MethodOptions { repeated string scopes = 50002; }
// What a customer buys.
//
// All of it.
message Order {
  reserved 4, 6 to 8;
  reserved "old";
  extensions 100 to max;
  /* Who buys. */
  required string name = 1 [default = "no \\"one\\"", (rule) = { max: 3 tags: "a" tags: "b" inner { max: 1 } }];
  repeated int32 sizes = 2 [packed = true, json_name = "SIZES"];
  optional group Part = 3 { optional bytes raw = 1 [default = "\\001x"]; }
  // Which.
  oneof kind { string big = 10; string small = 11; }
}
enum Colour { option allow_alias = true; RED = 0; ROT = 0 [deprecated = true]; }
service Shop {
  // Buys.
  rpc Buy(Order) returns (stream Order) { option deprecated = true; option (scopes) = "a"; option (scopes) = "b"; }
}
`,
  );
  const registry = registryOf(path);
  const shown = (name: string) => declarationText(lookUp(registry, name)!, registry);
  expect(shown('shop.Order')).toMatchInlineSnapshot(`
    "// What a customer buys.
    //
    // All of it.
    message Order {
      // Who buys.
      required string name = 1 [default = "no \\"one\\"", (shop.rule) = {
        max: 3
        tags: "a"
        tags: "b"
        inner: {
          max: 1
        }
      }];
      repeated int32 sizes = 2 [json_name = "SIZES", packed = true];
      optional group Part = 3 {
        optional bytes raw = 1 [default = "\\001x"];
      }
      // Which.
      oneof kind {
        string big = 10;
        string small = 11;
      }
      extensions 100 to max;
      reserved 4, 6 to 8;
      reserved "old";
    }"
  `);
  expect(shown('shop.Order.big')).toBe(shown('shop.Order'));
  expect(shown('shop.ROT')).toMatchInlineSnapshot(`
    "enum Colour {
      option allow_alias = true;
      RED = 0;
      ROT = 0 [deprecated = true];
    }"
  `);
  expect(shown('shop.Shop.Buy')).toMatchInlineSnapshot(`
    "// Buys.
    rpc Buy(shop.Order) returns (stream shop.Order) {
      option deprecated = true;
      option (shop.scopes) = "a";
      option (shop.scopes) = "b";
    }"
  `);
  expect(shown('shop.rule')).toMatchInlineSnapshot(`
    "extend google.protobuf.FieldOptions {
      optional shop.Rule rule = 50001;
    }"
  `);
});
