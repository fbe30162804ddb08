/**
 * Tests map entries as other encoders may write them: without a key, without a value, in either order, or
 * more than once. The bytes are written by hand, because our own encoder always writes both. The test
 * generates the module with the current source of the generator.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generate } from '../../codegen/index.ts';
import { proto3 } from './workspace.ts';

interface Decodes {
  decode(bytes: Uint8Array): Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/**
 * The type of a key, the key of an entry without a key, and another key, as a property and as bytes with its
 * tag.
 */
const keys: readonly (readonly [string, string, string, readonly number[]])[] = [
  ['int32', '0', '5', [0x08, 5]],
  ['int64', '0', '5', [0x08, 5]],
  ['uint32', '0', '5', [0x08, 5]],
  ['uint64', '0', '5', [0x08, 5]],
  ['sint32', '0', '5', [0x08, 10]],
  ['sint64', '0', '5', [0x08, 10]],
  ['fixed32', '0', '5', [0x0d, 5, 0, 0, 0]],
  ['sfixed32', '0', '5', [0x0d, 5, 0, 0, 0]],
  ['fixed64', '0', '5', [0x09, 5, 0, 0, 0, 0, 0, 0, 0]],
  ['sfixed64', '0', '5', [0x09, 5, 0, 0, 0, 0, 0, 0, 0]],
  ['bool', 'false', 'true', [0x08, 1]],
  ['string', '', 'k', [0x0a, 1, 0x6b]],
];
/** The field with the value 7. */
const seven = [0x10, 7];
/** A field that an entry does not have. */
const unknown = [0x18, 9];

describe.each(['bigint', 'string', 'number'] as const)('with int64 as %s', (int64) => {
  const place = join(import.meta.dirname, 'gen');
  let directory: string;
  let types: Readonly<Record<string, Decodes>>;
  beforeAll(async () => {
    mkdirSync(place, { recursive: true });
    directory = mkdtempSync(join(place, 'map-entries-'));
    const messages = keys.map(([type]) => `message By_${type} { map<${type}, int32> values = 1; }`);
    writeFileSync(join(directory, 'a.proto'), proto3(messages.join('\n')));
    await generate({ files: [join(directory, 'a.proto')], out: directory, int64 });
    types = (await import(join(directory, 'a.rdma.ts'))) as typeof types;
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  describe.each(keys)('a key of type %s', (type, zero, other, key) => {
    test.each<[string, (readonly number[])[], object]>([
      ['no key', [seven], { [zero]: 7 }],
      ['no value', [key], { [other]: 0 }],
      ['neither', [[]], { [zero]: 0 }],
      ['the value first', [[...seven, ...key]], { [other]: 7 }],
      ['unknown fields', [[...unknown, ...key, ...unknown, ...seven]], { [other]: 7 }],
      ['an entry without a key between others', [[...key, ...seven], seven, key], { [other]: 0, [zero]: 7 }],
    ])('%s', (_, entries, expected) => {
      const bytes = entries.flatMap((entry) => [0x0a, entry.length, ...entry]);
      expect({ ...types[`By_${type}`]!.decode(Uint8Array.from(bytes)).values }).toEqual(expected);
    });
  });
});
