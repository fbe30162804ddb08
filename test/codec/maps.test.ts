/** Tests map fields: number keys with and without gaps, and the kinds of objects that can be maps. */
import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { CodecError } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { runs } from '../extent.ts';
import { pairOf } from './corpus.ts';
import { Maps } from './gen/everything.rdma.ts';
import { esType } from './protobuf-es.ts';

/** Returns bytes that another encoder has written, with entries in the key order of JavaScript objects. */
function bytesOfOthers(field: string, entries: Readonly<Record<string, unknown>>): Buffer {
  const theirs = pairOf('corpus.everything.Maps').theirs;
  const bytes = Buffer.from(theirs.encode({ [field]: entries }).finish());
  const es = esType('corpus.everything.Maps');
  // protobuf-es reads the output of protobufjs and finds every entry.
  const read = fromBinary(es, bytes) as unknown as Record<string, object>;
  const key = field.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  expect(Object.keys(read[key] ?? {}).sort()).toEqual(Object.keys(entries).sort());
  return bytes;
}

describe('number keys', () => {
  test.each([
    ['dense', Array.from({ length: 100 }, (_, i) => i)],
    ['with gaps', Array.from({ length: 100 }, (_, i) => i * 1000)],
    ['descending', Array.from({ length: 100 }, (_, i) => 5000 - i * 40)],
    ['negative and large', [-1, -(2 ** 31), 2 ** 31 - 1, 2 ** 30, 2 ** 30 - 1, 0]],
  ])('%s', (_what, keys) => {
    const byInt32 = Object.fromEntries(keys.map((key) => [key, `v${key}`]));
    const bytes = bytesOfOthers('by_int32', byInt32);
    expect(Buffer.from(Maps.encode({ byInt32 }))).toEqual(bytes);
    const decoded = Maps.decode(bytes);
    expect(decoded.byInt32).toEqual(byInt32);
    expect(Object.keys(decoded.byInt32)).toHaveLength(keys.length);
  });

  test('up to the largest number are accepted, which is not an array index in JavaScript', () => {
    const keys = [0, 2 ** 30, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 2, 2 ** 32 - 1];
    const byUint32 = Object.fromEntries(keys.map((key, i) => [key, new Uint8Array([i])]));
    const bytes = bytesOfOthers('by_uint32', byUint32);
    expect(Buffer.from(Maps.encode({ byUint32 }))).toEqual(bytes);
    expect(Maps.decode(bytes).byUint32).toEqual(byUint32);
  });

  test('the last entry of a duplicate key wins, between maps with gaps', () => {
    const a = Maps.encode({ byInt32: { 1000: 'a', 70000: 'b' }, byUint32: { 90000: new Uint8Array([1]) } });
    const b = Maps.encode({ byInt32: { 1000: 'c', [2 ** 30]: 'd' }, byUint32: { 50: new Uint8Array([2]) } });
    const { byInt32, byUint32 } = Maps.decode(Buffer.concat([a, b, a]));
    expect(byInt32).toEqual({ 1000: 'a', 70000: 'b', [2 ** 30]: 'd' });
    expect(Object.keys(byUint32)).toEqual(['50', '90000']);
  });

  test.each([
    '',
    '-',
    '-0',
    '00',
    '01',
    '-01',
    '+5',
    ' 5',
    '5 ',
    '5.0',
    '1e3',
    '0x10',
    'NaN',
    '9'.repeat(12),
  ])('%j is refused, since it is not how JavaScript writes the number', (key) => {
    expect(() => Maps.encode({ byInt32: { [key]: '' } })).toThrow(/by_int32: expected a whole number as key/);
    expect(() => Maps.encode({ byUint32: { 1: new Uint8Array(0), [key]: new Uint8Array(0) } })).toThrow(
      CodecError,
    );
  });
});

test('many keys are all canonical numbers, or all are refused', () => {
  const right = ['0', '1', '7', '100', '1000', '2147483647', '2147483648', '4294967294', '4294967295'];
  const wrongWays = ['1e2', '1e3', '10e2', '0x64', ' 1', '7.', '07', '-0', '', '4294967295.0', '1.5', 'x'];
  const keys = fc.uniqueArray(
    fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom(...right) },
      { weight: 1, arbitrary: fc.constantFrom(...wrongWays) },
    ),
    { maxLength: 8 },
  );
  const property = fc.property(keys, (each) => {
    const byUint32 = Object.fromEntries(each.map((key, i) => [key, new Uint8Array([i])]));
    if (each.some((key) => wrongWays.includes(key)))
      expect(() => Maps.encode({ byUint32 })).toThrow(/by_uint32: expected a whole number as key/);
    else expect(Maps.decode(Maps.encode({ byUint32 })).byUint32).toEqual(byUint32);
  });
  fc.assert(property, { seed: 20_261_122, numRuns: runs(2000) });
});

describe('string keys', () => {
  const many = Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`key ${i}`, `${i}`]));
  const inherited = { inherited: 'x', 7: 'y' };
  class Labels {
    [key: string]: string;
    own = 'x';
  }
  Object.assign(Labels.prototype, { method: 'x' });
  const without = (map: { [key: string]: string }, ...keys: string[]) => {
    for (const key of keys) delete map[key];
    return map;
  };
  const hidden = Object.defineProperty({ seen: 'x' }, 'hidden', { value: 'y', enumerable: false });

  test.each<[string, { [key: string]: string }]>([
    ['a literal', { a: 'x', b: '', '': 'y' }],
    ['an empty object', {}],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 'x', 5: 'y' })],
    ['enough keys that V8 stores them in a hash table', many],
    ['an object with deleted keys', without({ a: 'x', b: 'y', c: 'z', d: 'w' }, 'a', 'c')],
    ['a frozen object', Object.freeze({ a: 'x', b: 'y' })],
    ['keys that are numbers', { 10: 'x', 9: 'y', '-1': 'z', '1e3': 'w', a: 'v' }],
    ['a key __proto__', JSON.parse('{"__proto__": "x", "a": "y"}')],
    ['keys that every object inherits', { constructor: 'x', hasOwnProperty: 'y', toString: 'z' }],
    [
      'inherited properties, which are not entries',
      Object.assign(Object.create(inherited), { a: 'x', 7: 'z' }),
    ],
    ['only inherited properties', Object.create(inherited)],
    ['an object of a class', new Labels()],
    ['a property that is not enumerable, and a symbol', Object.assign(hidden, { [Symbol('s')]: 'z' })],
    ['a proxy', new Proxy({ a: 'x', b: 'y' }, {})],
    [
      'getters',
      {
        get a() {
          return 'x';
        },
        b: 'y',
      },
    ],
  ])('%s', (_what, map) => {
    const encoded = Maps.encode({ textByString: map });
    const { textByString } = Maps.decode(encoded);
    expect(Object.entries(textByString)).toEqual(Object.entries(map));
    // Decoded maps are hash tables without a prototype.
    expect(Buffer.compare(Maps.encode({ textByString }), encoded)).toBe(0);
  });

  test('an entry that is deleted before it is written is omitted', () => {
    const map: { [key: string]: string } = {
      get a() {
        delete map.b;
        map.d = 'new';
        return 'x';
      },
      b: 'y',
      c: 'z',
    };
    expect(Object.keys(Maps.decode(Maps.encode({ textByString: map })).textByString)).toEqual(['a', 'c']);
  });
});
