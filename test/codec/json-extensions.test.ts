/**
 * Tests extensions in JSON, as members called `[full.name]`, compared with protobuf-es; and duplicate
 * members.
 */
import {
  fromBinary as esFromBinary,
  fromJson as esFromJson,
  toJson as esToJson,
  toBinary,
} from '@bufbuild/protobuf';
import fc from 'fast-check';
import { CodecError, createRegistry, equals } from 'rdma-rpc/codec';
import { fromJson, fromJsonString, type JsonValue, toJson } from 'rdma-rpc/json';
import { describe, expect, test } from 'vitest';
import * as proto2 from '../codegen/gen/proto2.rdma.ts';
import { runs } from '../extent.ts';
import { AllTypes } from './gen/conformance.rdma.ts';
import { registryOf } from './protobuf-es.ts';

const seed = 20_261_125;
const { Extendable, Extendable_inside, grouped, levels, message, number$: number, texts } = proto2;
const registry = createRegistry(proto2);
const esRegistry = registryOf([proto2]);
const es = esRegistry.getMessage(Extendable.typeName);
if (es === undefined) throw new Error('protobuf-es does not have the message');

const everything = (): proto2.Extendable => {
  const value = Extendable.create({ known: 1 });
  number.set(value, -5n);
  Extendable_inside.set(value, '');
  levels.set(value, [1, 5, -3]);
  message.set(value, { x: 7 });
  grouped.set(value, { text: 'in a group' });
  texts.set(value, ['a', 'b']);
  return value;
};
const inJson = {
  known: 1,
  '[lang.proto2.number]': '-5',
  '[lang.proto2.Extendable.inside]': '',
};

describe('a message with extensions', () => {
  test('is written with their full names, and parsed again', () => {
    const json = toJson(Extendable, everything(), { registry });
    expect(json).toMatchObject(inJson);
    expect(json).toEqual(
      esToJson(es, esFromBinary(es, Extendable.encode(everything())), { registry: esRegistry }),
    );
    const read = fromJson(Extendable, json, { registry });
    expect(equals(Extendable, read, everything())).toBe(true);
    expect(number.get(read)).toBe(-5n);
    expect(grouped.get(read)?.text).toBe('in a group');
  });

  test('is written without extensions that the registry lacks', () => {
    expect(toJson(Extendable, everything())).toEqual({ known: 1 });
    expect(toJson(Extendable, everything(), { registry: createRegistry(number) })).toEqual({
      known: 1,
      '[lang.proto2.number]': '-5',
    });
  });

  test('matches protobuf-es in both directions, for random values', () => {
    const some = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
    const values = fc.record({
      number: some(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
      inside: some(fc.string()),
      levels: some(fc.array(fc.constantFrom(1, 5, -3), { minLength: 1 })),
      texts: some(fc.array(fc.string(), { minLength: 1 })),
      group: some(fc.record({ text: fc.string() }, { requiredKeys: [] })),
    });
    const property = fc.property(values, (given) => {
      const value = Extendable.create();
      if (given.number !== undefined) number.set(value, given.number);
      if (given.inside !== undefined) Extendable_inside.set(value, given.inside);
      if (given.levels !== undefined) levels.set(value, given.levels);
      if (given.texts !== undefined) texts.set(value, given.texts);
      if (given.group !== undefined) grouped.set(value, given.group);
      const mine = toJson(Extendable, value, { registry });
      const theirs = esToJson(es, esFromBinary(es, Extendable.encode(value)), { registry: esRegistry });
      expect(mine).toEqual(theirs);
      const read = fromJson(Extendable, theirs as JsonValue, { registry });
      const readByThem = Extendable.decode(
        toBinary(es, esFromJson(es, mine as never, { registry: esRegistry })),
      );
      for (const each of [read, readByThem]) expect(toJson(Extendable, each, { registry })).toEqual(mine);
    });
    fc.assert(property, { seed, numRuns: runs(200) });
  });

  test.each<[string, JsonValue, object, RegExp]>([
    ['not in the registry', { '[lang.proto2.number]': '1' }, {}, /unknown field "\[lang\.proto2\.number\]"/],
    ['without a name', { '[]': 1 }, { registry }, /unknown field "\[\]"/],
    ['without its package', { number: 1 }, { registry }, /unknown field "number"/],
    [
      'with a value of the wrong type',
      { '[lang.proto2.number]': true },
      { registry },
      /^lang\.proto2\.Extendable\.\[lang\.proto2\.number\]: expected/,
    ],
    [
      'with null in its list',
      { '[lang.proto2.texts]': [null] },
      { registry },
      /\[lang\.proto2\.texts\]\[0\]: expected/,
    ],
  ])('an extension %s is refused', (_what, json, options, reason) => {
    const read = () => fromJson(Extendable, json, options);
    expect(read).toThrow(CodecError);
    expect(read).toThrow(reason);
  });

  test('an extension of another message is refused, unknown ones are ignored on request, and null means absent', () => {
    expect(() => fromJson(AllTypes, { '[lang.proto2.number]': 1 }, { registry })).toThrow(
      /\[lang\.proto2\.number\] is an extension of lang\.proto2\.Extendable/,
    );
    const lax = { registry, ignoreUnknownFields: true };
    expect(fromJson(Extendable, { '[no.such]': { a: 1 }, known: 3 }, lax)).toEqual(
      Extendable.create({ known: 3 }),
    );
    const absent = fromJson(Extendable, { '[lang.proto2.number]': null, '[lang.proto2.texts]': null }, lax);
    expect(absent).toEqual(Extendable.create());
  });

  test('malformed bytes with the number of an extension cause a CodecError', () => {
    const broken = Extendable.create();
    broken.$unknownFields = Uint8Array.of(0xa8, 0x06, 0xff); // This is field 101, a varint that is cut off.
    expect(() => toJson(Extendable, broken, { registry })).toThrow(CodecError);
  });

  test('two extensions with the same name or number cannot be in one registry', () => {
    expect(() => createRegistry(number, number, proto2)).not.toThrow();
    expect(() => createRegistry(number, { ...number })).toThrow(
      'two different extensions are called lang.proto2.number',
    );
    expect(() => createRegistry(number, { ...number, name: 'other' })).toThrow(
      'two different extensions have the same message and number: lang.proto2.Extendable 101',
    );
  });
});

describe('duplicate members are refused', () => {
  test.each<[string, string]>([
    ['at the top level', '{"optionalInt32": 1, "optionalInt32": 1}'],
    ['written in two ways', '{"optionalInt32":1,"optional\\u0049nt32":1}'],
    ['in nested objects', '{"optionalInt64":"1","optionalNestedMessage":{"a":1,"b":[{"c":{}},"}"],"a":2}}'],
    ['in an object of a list', '[{"a":1},{"a":[],"a":1}]'],
    ['with a quote in the name', '{"\\"":1,"\\"":2}'],
    ['with a backslash at its end', '{"\\\\":"x","\\\\":2}'],
    ['with no name', '{"":1,"":2}'],
    ['__proto__', '{"__proto__":1,"__proto__":2}'],
  ])('%s', (_what, text) => {
    expect(() => fromJsonString(AllTypes, text)).toThrow(/an object has two members called "/);
  });

  test.each<[string, string]>([
    ['in two objects', '{"repeatedNestedMessage":[{"a":1},{"a":1}],"optionalNestedMessage":{"a":1}}'],
    ['when a value equals a name', '{"optionalString":"optionalString","repeatedString":["a","a",","]}'],
    ['when a string looks like JSON members', '{"optionalString":"{\\"a\\":1,\\"a\\":1}"}'],
  ])('but are not reported %s', (_what, text) => {
    expect(() => fromJsonString(AllTypes, text)).not.toThrow();
  });
});
