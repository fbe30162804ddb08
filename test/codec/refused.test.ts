/** Tests the values that the encoder refuses, with an error that names the field. */
import { CodecError, type MessageType, Writer } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { encodeMeasured } from '../../runtime/codec/measured.ts';
import {
  JsTypes,
  Maps,
  Oneofs,
  Optionals,
  Packed,
  Scalars,
  type ScalarsInit,
  Tree,
  Unpacked,
} from './gen/everything.rdma.ts';

const wrong: [string, unknown, unknown, string, RegExp][] = [
  ['a string as int32', Scalars, { fInt32: '5' }, 'Scalars.f_int32', /whole number .* got string "5"/],
  ['a fraction as int32', Scalars, { fInt32: 1.5 }, 'Scalars.f_int32', /got number 1.5/],
  ['NaN as int32', Scalars, { fInt32: Number.NaN }, 'Scalars.f_int32', /got number NaN/],
  [
    '2^31 as int32',
    Scalars,
    { fInt32: 2 ** 31 },
    'Scalars.f_int32',
    /-2\^31 to 2\^31 - 1, got number 2147483648/,
  ],
  ['-1 as uint32', Scalars, { fUint32: -1 }, 'Scalars.f_uint32', /0 to 2\^32 - 1, got number -1/],
  ['2^32 as uint32', Scalars, { fUint32: 2 ** 32 }, 'Scalars.f_uint32', /got number 4294967296/],
  ['2^31 as sint32', Scalars, { fSint32: 2 ** 31 }, 'Scalars.f_sint32', /got number 2147483648/],
  ['-1 as fixed32', Scalars, { fFixed32: -1 }, 'Scalars.f_fixed32', /got number -1/],
  ['2^31 as sfixed32', Scalars, { fSfixed32: 2 ** 31 }, 'Scalars.f_sfixed32', /got number 2147483648/],
  ['null as int32', Scalars, { fInt32: null }, 'Scalars.f_int32', /got null/],
  ['a number as int64', Scalars, { fInt64: 5 }, 'Scalars.f_int64', /a bigint, got number 5/],
  [
    '2^63 as int64',
    Scalars,
    { fInt64: 2n ** 63n },
    'Scalars.f_int64',
    /-2\^63 to 2\^63 - 1, got bigint 9223372036854775808n/,
  ],
  ['-1 as uint64', Scalars, { fUint64: -1n }, 'Scalars.f_uint64', /0 to 2\^64 - 1, got bigint -1n/],
  ['2^64 as fixed64', Scalars, { fFixed64: 2n ** 64n }, 'Scalars.f_fixed64', /0 to 2\^64 - 1/],
  ['2^63 as sfixed64', Scalars, { fSfixed64: 2n ** 63n }, 'Scalars.f_sfixed64', /2\^63 - 1/],
  ['an endless bigint', Scalars, { fSint64: 1n << 5000n }, 'Scalars.f_sint64', /got a very long bigint/],
  ['a string as double', Scalars, { fDouble: '1' }, 'Scalars.f_double', /a number, got string "1"/],
  ['a bigint as float', Scalars, { fFloat: 1n }, 'Scalars.f_float', /a number, got bigint 1n/],
  ['1 as bool', Scalars, { fBool: 1 }, 'Scalars.f_bool', /a boolean, got number 1/],
  ['a number as string', Scalars, { fString: 5 }, 'Scalars.f_string', /a string, got number 5/],
  ['a string as bytes', Scalars, { fBytes: 'abc' }, 'Scalars.f_bytes', /a Uint8Array, got string "abc"/],
  ['a Float64Array as bytes', Scalars, { fBytes: new Float64Array(1) }, 'Scalars.f_bytes', /a Uint8Array/],
  ['an ArrayBuffer as bytes', Scalars, { fBytes: new ArrayBuffer(1) }, 'Scalars.f_bytes', /a Uint8Array/],
  [
    'a name as enum',
    Scalars,
    { fEnum: 'COLOUR_RED' },
    'Scalars.f_enum',
    /an enum value .* got string "COLOUR_RED"/,
  ],
  ['2^31 as enum', Scalars, { fEnum: 2 ** 31 }, 'Scalars.f_enum', /an enum value/],
  ['a string as message', Scalars, { fMessage: 'x' }, 'Scalars.f_message', /an object, got string "x"/],
  ['an array as message', Scalars, { fMessage: [] }, 'Scalars.f_message', /an object, got an array/],
  ['null as message', Tree, { next: null }, 'Tree.next', /an object, got null/],
  ['no message at all', Tree, undefined, 'Tree', /an object, got undefined/],
  [
    'an error deep inside',
    Tree,
    { children: [{ next: { label: 1 } }] },
    'Tree.label',
    /a string, got number 1/,
  ],
  ['one value for a list', Packed, { fInt32: 5 }, 'Packed.f_int32', /an array, got number 5/],
  ['a wrong element of a list', Packed, { fInt32: [1, '2'] }, 'Packed.f_int32', /got string "2"/],
  [
    'an undefined element of a list',
    Packed,
    { fString: [undefined] },
    'Packed.f_string',
    /a string, got undefined/,
  ],
  ['a list as map', Maps, { byInt32: [] }, 'Maps.by_int32', /a plain object, got an array/],
  ['a Map as map', Maps, { byInt32: new Map() }, 'Maps.by_int32', /a plain object/],
  ['a list as map with string keys', Maps, { textByString: [] }, 'Maps.text_by_string', /got an array/],
  ['a Map with string keys', Maps, { textByString: new Map() }, 'Maps.text_by_string', /a plain object/],
  ['null as map', Maps, { textByString: null }, 'Maps.text_by_string', /a plain object, got null/],
  ['text as map', Maps, { textByString: 'ab' }, 'Maps.text_by_string', /a plain object, got string "ab"/],
  [
    'a word as int32 key',
    Maps,
    { byInt32: { x: '' } },
    'Maps.by_int32',
    /a whole number as key, got string "x"/,
  ],
  [
    'an empty int32 key',
    Maps,
    { byInt32: { '': '' } },
    'Maps.by_int32',
    /a whole number as key, got string ""/,
  ],
  [
    'a fraction as uint32 key',
    Maps,
    { byUint32: { 1.5: new Uint8Array(0) } },
    'Maps.by_uint32',
    /a whole number as key, got string "1.5"/,
  ],
  ['a word as int64 key', Maps, { byInt64: { x: 1n } }, 'Maps.by_int64', /decimal digits, got string "x"/],
  [
    '2^64 as uint64 key',
    Maps,
    { byUint64: { '18446744073709551616': 1n } },
    'Maps.by_uint64',
    /0 to 2\^64 - 1/,
  ],
  ['1 as bool key', Maps, { byBool: { 1: '' } }, 'Maps.by_bool', /`true` or `false` as key/],
  ['a wrong value of a map', Maps, { byInt32: { 1: 5 } }, 'Maps.by_int32', /a string, got number 5/],
  [
    'a oneof that is no object',
    Oneofs,
    { choice: 'number' },
    'Oneofs.choice',
    /an object with `case` and `value`/,
  ],
  [
    'an unknown case',
    Oneofs,
    { choice: { case: 'other' } },
    'Oneofs.choice',
    /the name of one of its fields/,
  ],
  [
    'a wrong value in a oneof',
    Oneofs,
    { choice: { case: 'text', value: 5 } },
    'Oneofs.text',
    /a string, got number 5/,
  ],
  [
    'a number for jstype string',
    JsTypes,
    { asString: 5 },
    'JsTypes.as_string',
    /decimal digits, got number 5/,
  ],
  ['hexadecimal for jstype string', JsTypes, { asString: '0x10' }, 'JsTypes.as_string', /decimal digits/],
  ['an unsafe number for jstype number', JsTypes, { asNumber: 2 ** 53 }, 'JsTypes.as_number', /2\^53 - 1/],
];

/**
 * Returns the error that the encoder throws. The function also tries a measured message, because measuring
 * does not check values.
 */
function refusals(type: MessageType<unknown, unknown>, message: unknown): unknown[] {
  const writer = new Writer();
  const room = type.bound(message, writer);
  expect(room).toBeGreaterThanOrEqual(0);
  expect(room).toBeLessThan(16_384);
  writer.reset(new Uint8Array(room));
  return [() => type.encode(message), () => encodeMeasured(type, message, writer, 0)].map((encode) => {
    try {
      encode();
    } catch (error) {
      return error;
    }
    return undefined;
  });
}

test.each(wrong)('%s', (_what, type, message, path, reason) => {
  for (const error of refusals(type as MessageType<unknown, unknown>, message)) {
    expect(error).toBeInstanceOf(CodecError);
    const { path: at, offset, message: text } = error as CodecError;
    expect(at).toBe(`corpus.everything.${path}`);
    expect(offset).toBeUndefined();
    expect(text).toMatch(reason);
  }
});

/**
 * Values of each JavaScript type, some of which throw an error of their own when they are converted to a
 * number.
 */
const kinds: readonly [string, unknown][] = [
  ['a bigint', 5n],
  ['a bigint of 0', 0n],
  ['a number', 5],
  ['a fraction', -0.5],
  ['a string', '5'],
  ['a boolean', true],
  ['null', null],
  ['a symbol', Symbol('5')],
  ['a function', () => 5],
  ['an object', {}],
  [
    'an object that cannot be converted to a number',
    {
      valueOf() {
        throw new Error('asked for its value');
      },
    },
  ],
  ['an object without a prototype', Object.create(null)],
  ['a list', [5]],
  ['a date', new Date(5)],
];

/** Messages that contain the value, each in a different kind of field. */
const places: readonly [string, MessageType<unknown, unknown>, (key: string, value: unknown) => object][] = [
  ['a field', Scalars as MessageType<unknown, unknown>, (key, value) => ({ [key]: value })],
  ['a field with presence', Optionals as MessageType<unknown, unknown>, (key, value) => ({ [key]: value })],
  ['a packed list', Packed as MessageType<unknown, unknown>, (key, value) => ({ [key]: [value] })],
  ['a list', Unpacked as MessageType<unknown, unknown>, (key, value) => ({ [key]: [value] })],
  ['a map', Maps as MessageType<unknown, unknown>, (key, value) => ({ [key]: { 1: value } })],
  ['a field with a jstype', JsTypes as MessageType<unknown, unknown>, (key, value) => ({ [key]: value })],
  ['a list with a jstype', JsTypes as MessageType<unknown, unknown>, (key, value) => ({ [key]: [value] })],
];

describe.each(places)('any value in %s is written or refused with a CodecError', (_place, type, message) => {
  const keys = Object.keys(type.create() as object);
  test.each(kinds)('%s', (_kind, value) => {
    expect(keys.length).toBeGreaterThan(5);
    for (const key of keys)
      for (const error of refusals(type, message(key, value)))
        if (error !== undefined) expect(error, key).toBeInstanceOf(CodecError);
  });
});

describe('unlimited nesting', () => {
  const tree = Tree as MessageType<unknown, unknown>;
  const self = (make: (self: object) => object): object => {
    const message = {};
    return Object.assign(message, make(message));
  };

  test.each([
    ['in a field', self((next) => ({ next })), 'Tree.next'],
    ['in a list, twice', self((each) => ({ children: [each, each] })), 'Tree.children'],
    ['in a map, twice', self((each) => ({ named: { a: each, b: each } })), 'Tree.named'],
    ['in a list and behind it', self((each) => ({ children: [each, each], next: each })), ''],
  ])('of a message that contains itself is refused: %s', (_what, message, path) => {
    for (const error of refusals(tree, message)) {
      expect(error).toBeInstanceOf(CodecError);
      expect((error as CodecError).message).toMatch(/more than 100 deep/);
      expect((error as CodecError).path).toContain(`corpus.everything.${path}`);
    }
  });

  test('a message too large for the shared memory does not change the next one', () => {
    const message = self((each) => ({ label: 'x'.repeat(100_000), children: [each, each] }));
    expect(() => tree.encode(message)).toThrow(/more than 100 deep/);
    expect(Tree.decode(Tree.encode({ label: 'y'.repeat(100_000), next: {} })).next).toBeDefined();
  });
});

test('errors after a value too large for the shared memory name their field', () => {
  for (const wrongPart of [{ next: null }, { children: 5 }, { children: [{ label: 5 }] }, { named: [] }]) {
    const message = { label: 'x'.repeat(100_000), ...wrongPart };
    expect(() => (Tree as MessageType<unknown, unknown>).encode(message)).toThrow(CodecError);
  }
});

test('nesting over 100 is refused, as in decoding', () => {
  const nest = (depth: number): object => (depth === 0 ? {} : { next: nest(depth - 1) });
  expect(Tree.decode(Tree.encode(nest(100))).next).toBeDefined();
  expect(() => Tree.encode(nest(101))).toThrow(CodecError);
});

test('create treats null as encode does', () => {
  for (const key of ['fInt32', 'fString', 'fMessage']) {
    const message = (Scalars as MessageType<object, unknown>).create({ [key]: null });
    expect(message).toHaveProperty(key, null);
    expect(() => (Scalars as MessageType<unknown, unknown>).encode(message)).toThrow(/got null/);
  }
});

describe('the encoder accepts', () => {
  test.each([
    ['undefined as absent', { fInt32: undefined, fString: undefined, fMessage: undefined }, ''],
    [
      'defaults',
      { fInt32: 0, fString: '', fBytes: new Uint8Array(0), fBool: false, fInt64: 0n, fDouble: 0, fEnum: 0 },
      '',
    ],
    ['minus zero of a float', { fFloat: -0 }, '1500000080'],
    ['minus zero of an integer, which is 0', { fInt32: -0 }, ''],
    ['a lone surrogate, as U+FFFD', { fString: 'a\ud800b' }, '720561efbfbd62'],
    ['a Buffer', { fBytes: Buffer.from('ab') }, '7a026162'],
    ['keys that the message does not have', { other: 5 }, ''],
  ])('%s', (_what, message, hex) => {
    expect(Buffer.from(Scalars.encode(message as ScalarsInit)).toString('hex')).toBe(hex);
  });

  test('properties added to Object.prototype are not map entries', () => {
    Object.defineProperty(Object.prototype, 'polluted', {
      value: 'x',
      enumerable: true,
      configurable: true,
      writable: true,
    });
    const encoded = Maps.encode({ textByString: {} });
    const created = Maps.create({ textByString: {} }).textByString;
    Reflect.deleteProperty(Object.prototype, 'polluted');
    expect(encoded).toHaveLength(0);
    expect(created).toEqual({});
  });
});
