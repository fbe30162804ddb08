/**
 * Tests the JSON mapping's options, its text forms and its errors. conformance/ has valid and invalid inputs,
 * and protobuf-es.test.ts random messages.
 */
import { CodecError, createRegistry, packAny, StringValue } from 'rdma-rpc/codec';
import { fromJson, fromJsonString, type JsonValue, jsonReplacer, toJson, toJsonString } from 'rdma-rpc/json';
import { describe, expect, test } from 'vitest';
import { AllTypes, type AllTypesInit } from './gen/conformance.rdma.ts';
import { JsTypes, Maps, Oneofs, Optionals, Scalars, Tree } from './gen/everything.rdma.ts';

describe('options of writing', () => {
  test('alwaysEmitImplicit writes unset fields without presence, empty lists and empty maps', () => {
    const json = toJson(Scalars, {}, { alwaysEmitImplicit: true });
    expect(json).toEqual({
      fDouble: 0,
      fFloat: 0,
      fInt32: 0,
      fUint32: 0,
      fSint32: 0,
      fFixed32: 0,
      fSfixed32: 0,
      fInt64: '0',
      fUint64: '0',
      fSint64: '0',
      fFixed64: '0',
      fSfixed64: '0',
      fBool: false,
      fString: '',
      fBytes: '',
      fEnum: 'COLOUR_NONE',
    });
    expect(toJson(Optionals, {}, { alwaysEmitImplicit: true })).toEqual({});
    expect(toJson(Oneofs, {}, { alwaysEmitImplicit: true })).toEqual({ before: 0, between: 0, behind: 0 });
    expect(toJson(Tree, {}, { alwaysEmitImplicit: true })).toEqual({
      label: '',
      payload: '',
      children: [],
      named: {},
    });
  });

  test('useProtoFieldName writes the names of the .proto', () => {
    expect(toJson(Scalars, { fInt32: 1 }, { useProtoFieldName: true })).toEqual({ f_int32: 1 });
  });

  test('enumAsNumber writes enums as numbers', () => {
    expect(toJson(Scalars, { fEnum: 1 })).toEqual({ fEnum: 'COLOUR_RED' });
    expect(toJson(Scalars, { fEnum: 1 }, { enumAsNumber: true })).toEqual({ fEnum: 1 });
  });

  test('indent sets the indentation', () => {
    expect(toJsonString(Scalars, { fInt32: 1 }, { indent: 2 })).toBe('{\n  "fInt32": 1\n}');
    expect(toJsonString(Scalars, { fInt32: 1 })).toBe('{"fInt32":1}');
  });
});

test('jstype determines the type of 64-bit numbers, not their JSON form', () => {
  const message = fromJson(
    JsTypes,
    { asString: '1', asNumber: 2, asBigint: '3', strings: [-1], either: null } as JsonValue,
    { ignoreUnknownFields: true },
  );
  expect(message).toMatchObject({ asString: '1', asNumber: 2, asBigint: 3n, strings: ['-1'] });
  expect(toJson(JsTypes, message)).toEqual({ asString: '1', asNumber: '2', asBigint: '3', strings: ['-1'] });
});

test('the key __proto__ is written and parsed like any other key', () => {
  const message = fromJsonString(Maps, '{"textByString":{"__proto__":"a"}}');
  expect(Object.keys(message.textByString)).toEqual(['__proto__']);
  expect(toJsonString(Maps, message)).toBe('{"textByString":{"__proto__":"a"}}');
  expect(({} as Record<string, unknown>).a).toBeUndefined();
});

describe('errors name the field', () => {
  test.each([
    [
      'a value',
      '{"repeatedNestedMessage":[{},{"a":"x"}]}',
      'corpus.conformance.AllTypes.repeated_nested_message[1].a: expected a whole number from -2147483648 to 2147483647, got string "x"',
    ],
    [
      'a key',
      '{"mapInt32Int32":{"x":1}}',
      'corpus.conformance.AllTypes.map_int32_int32["x"]: expected a whole number from -2147483648 to 2147483647, got string "x"',
    ],
    [
      'an unknown field',
      '{"optionalNestedMessage":{"b":1}}',
      'corpus.conformance.AllTypes.optional_nested_message: unknown field "b" (option ignoreUnknownFields ignores it)',
    ],
    [
      'an enum',
      '{"optionalNestedEnum":"NO"}',
      'corpus.conformance.AllTypes.optional_nested_enum: expected one of FOO, BAR, BAZ, NEG, got string "NO"',
    ],
    [
      'a oneof',
      '{"oneofBool":true,"oneofString":"x"}',
      'corpus.conformance.AllTypes.oneof_string: another field of the same oneof, oneofBool, is set too',
    ],
    ['text that is not JSON', '{', /^corpus\.conformance\.AllTypes: not JSON: /],
  ] as const)('%s, when reading', (_what, text, message) => {
    expect(() => fromJsonString(AllTypes, text)).toThrow(CodecError);
    expect(() => fromJsonString(AllTypes, text)).toThrow(message);
  });

  test.each([
    [
      'a number',
      { optionalInt32: 0.5 },
      'optional_int32: expected a whole number from -2147483648 to 2147483647, got number 0.5',
    ],
    [
      'a bigint',
      { optionalUint64: -1n },
      'optional_uint64: expected a whole number from 0 to 2^64 - 1, got bigint -1n',
    ],
    ['a string', { optionalString: 5 }, 'optional_string: expected a string, got number 5'],
    ['bytes', { optionalBytes: 'x' }, 'optional_bytes: expected a Uint8Array, got string "x"'],
    ['a list', { repeatedInt32: 5 }, 'repeated_int32: expected an array, got number 5'],
    ['a map', { mapInt32Int32: [] }, 'map_int32_int32: expected a plain object, got an array'],
    ['a message', { optionalNestedMessage: 5 }, 'optional_nested_message: expected an object, got number 5'],
    [
      'a timestamp',
      { optionalTimestamp: { seconds: 0n, nanos: -1 } },
      'optional_timestamp.nanos: expected a number from 0 to 999999999, got number -1',
    ],
  ] as const)('%s, when writing', (_what, message, text) => {
    expect(() => toJson(AllTypes, message as unknown as AllTypesInit)).toThrow(CodecError);
    expect(() => toJson(AllTypes, message as unknown as AllTypesInit)).toThrow(text);
  });

  test('a cycle, and JSON that is nested too deep, are refused', () => {
    const cycle = Tree.create();
    cycle.next = cycle;
    expect(() => toJson(Tree, cycle)).toThrow(/nested more than 100 deep/);
    const deep = (levels: number) => `${'{"next":'.repeat(levels)}{}${'}'.repeat(levels)}`;
    expect(() => fromJsonString(Tree, deep(100))).not.toThrow();
    expect(() => fromJsonString(Tree, deep(101))).toThrow(/nested more than 100 deep/);
    const value = `${'['.repeat(5000)}${']'.repeat(5000)}`;
    expect(() => fromJsonString(AllTypes, `{"optionalValue":${value}}`)).toThrow(/nested more than 100 deep/);
  });

  test('an Any without a registry is refused', () => {
    const any = packAny(StringValue, { value: 'x' });
    expect(() => toJson(AllTypes, { optionalAny: any })).toThrow(
      'optional_any: type "type.googleapis.com/google.protobuf.StringValue" is not in the registry (option registry)',
    );
    const registry = createRegistry(StringValue);
    expect(toJson(AllTypes, { optionalAny: any }, { registry })).toEqual({
      optionalAny: { '@type': any.typeUrl, value: 'x' },
    });
  });
});

describe('JSON.stringify with jsonReplacer', () => {
  const message = AllTypes.create({
    optionalInt64: -(2n ** 63n),
    repeatedInt64: [1n, 2n],
    optionalBytes: new Uint8Array([1, 2, 255]),
    oneofField: { case: 'oneofUint64', value: 5n },
    mapInt64Int64: { 7: 8n },
  });

  test('JSON.stringify refuses 64-bit numbers without it', () => {
    expect(() => JSON.stringify(message)).toThrow(/BigInt/);
  });

  test('64-bit numbers and bytes are written as toJson writes them', () => {
    const plain = JSON.parse(JSON.stringify({ at: 'log', message }, jsonReplacer));
    const exact = toJson(AllTypes, message) as Record<string, unknown>;
    for (const name of ['optionalInt64', 'repeatedInt64', 'optionalBytes', 'mapInt64Int64'])
      expect(plain.message[name], name).toEqual(exact[name]);
    expect(plain.message.oneofField).toEqual({ case: 'oneofUint64', value: exact.oneofUint64 });
  });

  test('Buffers and views of larger memory are written by their own bytes, and other values are unchanged', () => {
    const memory = new Uint8Array([9, 1, 2, 255, 9]);
    const values = [Buffer.from([1, 2, 255]), memory.subarray(1, 4), 'AQL/', null, { a: [1.5, true] }];
    expect(JSON.parse(JSON.stringify(values, jsonReplacer))).toEqual([
      'AQL/',
      'AQL/',
      'AQL/',
      null,
      { a: [1.5, true] },
    ]);
    expect(JSON.stringify(7n, jsonReplacer)).toBe('"7"');
  });
});
