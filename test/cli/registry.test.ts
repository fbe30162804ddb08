/**
 * Tests descriptors that no compiler would create, and requests with unknown names. Each causes an error of
 * one sentence.
 */

import { describe, expect, test } from 'vitest';
import { create, type FileDescriptorProto, FileDescriptorProtoSchema, fromBinary, toJson } from '#protobuf';
import { jsonTexts, requestOf } from '../../cli/server/request.ts';
import { lookUp, registryOf } from '../../cli/server/schema/registry.ts';

type Init = Parameters<typeof create<typeof FileDescriptorProtoSchema>>[1];
const file = (init: Init): FileDescriptorProto => create(FileDescriptorProtoSchema, init);
const scalar = (name: string, number: number, type = 9) => ({ name, number, type, label: 1 });

describe('descriptors', () => {
  test.each<[string, FileDescriptorProto[], RegExp]>([
    [
      'an import that is missing',
      [file({ name: 'a', dependency: ['b'] })],
      /^a imports b, which is missing$/,
    ],
    [
      'imports in a circle',
      [file({ name: 'a', dependency: ['b'] }), file({ name: 'b', dependency: ['a'] })],
      /^(a and b|b and a) import each other in a circle$/,
    ],
    [
      'an undeclared type',
      [
        file({
          name: 'a',
          messageType: [{ name: 'A', field: [{ ...scalar('x', 1, 11), typeName: '.Nope' }] }],
        }),
      ],
      /^the descriptors cannot be used: .*/,
    ],
  ])('with %s are an error', (_, files, error) => {
    expect(() => registryOf(files)).toThrow(error);
  });

  test('may import each other in a chain of any length', () => {
    const files = Array.from({ length: 20_000 }, (_, i) =>
      file({ name: `${i}`, dependency: i === 0 ? [] : [`${i - 1}`] }),
    );
    expect([...registryOf(files.reverse()).files]).toHaveLength(20_000);
  });

  test('may have fields named like properties of objects', () => {
    const names = ['__proto__', 'constructor', 'toString', 'valueOf', 'hasOwnProperty'];
    const field = names.map((name, i) => scalar(name, i + 1));
    const registry = registryOf([file({ name: 'a', messageType: [{ name: 'A', field }] })]);
    const input = registry.getMessage('A')!;
    const json = JSON.parse('{"constructor":"c","toString":"t","valueOf":"v","hasOwnProperty":"h"}');
    const bytes = requestOf(json, { input, registry, ignoreUnknownFields: false });
    expect(toJson(input, fromBinary(input, bytes))).toEqual(json);
    expect(Object.prototype).not.toHaveProperty('c');
  });

  test('get JSON names when they have none', () => {
    const registry = registryOf([
      file({ name: 'a', messageType: [{ name: 'A', field: [scalar('a_b', 1)] }] }),
    ]);
    expect(registry.getMessage('A')?.fields[0]?.jsonName).toBe('aB');
  });
});

describe('names in a request', () => {
  const registry = registryOf([
    file({
      name: 'a',
      package: 'p',
      syntax: 'proto3',
      enumType: [
        {
          name: 'Colour',
          value: [
            { name: 'RED', number: 0 },
            { name: 'GREEN', number: 1 },
          ],
        },
      ],
      messageType: [
        {
          name: 'A',
          field: [
            { ...scalar('colour', 1, 14), typeName: '.p.Colour' },
            { ...scalar('inner_a', 2, 11), typeName: '.p.A' },
            { ...scalar('list', 3, 11), label: 3, typeName: '.p.A' },
          ],
        },
      ],
    }),
  ]);
  const input = registry.getMessage('p.A')!;
  const encode = (json: unknown) => requestOf(json as never, { input, registry, ignoreUnknownFields: false });

  test.each<[unknown, string]>([
    [{ colur: 0 }, 'p.A: unknown field "colur"; did you mean colour?'],
    [{ innerA: { list: [{}, { x: 1 }] } }, 'p.A: unknown field "x"; available: colour, innerA, list'],
    [{ colour: 'GREN' }, 'p.A.colour: p.Colour has no value "GREN"; did you mean GREEN?'],
  ])('an unknown name in %j is an error', (json, error) => {
    expect(() => encode(json)).toThrow(error);
  });

  test('may be those of the .proto or of JSON, and enums may be numbers', () => {
    expect([...encode({ inner_a: { colour: 1 } })]).toEqual([...encode({ innerA: { colour: 'GREEN' } })]);
  });

  test('fields and values have the type in which they are declared', () => {
    expect(lookUp(registry, 'p.A.list')).toBe(input);
    expect(lookUp(registry, 'p.GREEN')).toBe(registry.getEnum('p.Colour'));
    expect(lookUp(registry, 'p.Nope')).toBeUndefined();
  });
});

test.each<[string, string[], [string, number][]]>([
  [
    'lines',
    ['{"a":1}\n{"a":2}\n'],
    [
      ['{"a":1}', 1],
      ['{"a":2}', 2],
    ],
  ],
  [
    'many lines',
    ['{\n "a": [\n1]\n}\n[2]'],
    [
      ['{\n "a": [\n1]\n}', 1],
      ['[2]', 5],
    ],
  ],
  [
    'braces and quotes in texts',
    ['{"}\\"{":"]"}{}'],
    [
      ['{"}\\"{":"]"}', 1],
      ['{}', 1],
    ],
  ],
  [
    'chunks',
    ['{"a', '":"\\', '""}', ' 1', '2 true'],
    [
      ['{"a":"\\""}', 1],
      ['12', 1],
      ['true', 1],
    ],
  ],
  ['nothing', [' \n '], []],
  [
    'an end too early',
    ['{}\n{"a":'],
    [
      ['{}', 1],
      ['{"a":', 2],
    ],
  ],
])('JSON values are split: %s', async (_, chunks, values) => {
  const found: [string, number][] = [];
  for await (const { text, line } of jsonTexts(chunks)) found.push([text, line]);
  expect(found).toEqual(values);
});
