/**
 * Tests the codec of values without a schema: decoded values, out-of-line values, refused values, and bytes
 * of a hostile peer.
 */
import fc from 'fast-check';
import { Packr, pack } from 'msgpackr';
import { CodecError } from 'rdma-rpc/codec';
import { msgpackType } from 'rdma-rpc/msgpack';
import { describe, expect, test } from 'vitest';
import { Source } from '../../runtime/codec/memory/source.ts';
import { Writer } from '../../runtime/codec/memory/writer.ts';
import { runs } from '../extent.ts';

fc.configureGlobal({ seed: 20_261_121 });

const type = msgpackType<unknown>('test');

/** Encodes as a bulk message, in memory segments with the large values between them. */
function gathered(value: unknown, gatherBytes: number): { bytes: Uint8Array; outOfLine: number } {
  const writer = new Writer();
  writer.gatherBytes = gatherBytes;
  writer.reset(new Uint8Array(0));
  const room = type.bound(value, writer);
  const memory = new Uint8Array(room);
  writer.reset(memory);
  const end = type.encodeTo(value, writer, 0);
  expect(end).toBeLessThanOrEqual(room);
  const parts: Uint8Array[] = [];
  let from = 0;
  for (let i = 0; i < writer.outOfLine; ++i) {
    parts.push(memory.subarray(from, writer.outOfLineAt[i]), writer.outOfLineValue[i]!);
    from = writer.outOfLineAt[i]!;
  }
  return {
    bytes: new Uint8Array(Buffer.concat([...parts, memory.subarray(from, end)])),
    outOfLine: writer.outOfLine,
  };
}

const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    fc.constantFrom(null, undefined, true, false, '', 0, -1, Number.NaN, Number.POSITIVE_INFINITY),
    // MessagePack's integers have no -0, and msgpackr writes whole numbers as integers.
    fc.double().map((value) => (Object.is(value, -0) ? 0 : value)),
    fc.integer(),
    fc.string({ unit: 'binary' }),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.uint8Array({ maxLength: 40 }),
    fc.date({ noInvalidDate: true }),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(
      fc.string().filter((key) => key !== '__proto__'),
      tie('value'),
      { maxKeys: 5, noNullPrototype: true },
    ),
  ),
})).value;
/** Lone surrogates have no UTF-8 form. */
const wellFormed = (value: unknown) =>
  !JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? '' : v))?.includes('\\ud');

describe('a value is decoded as it was encoded', () => {
  test('in one buffer', () => {
    fc.assert(
      fc.property(values.filter(wellFormed), (value) => {
        expect(type.decode(type.encode(value))).toEqual(value);
      }),
    );
  });

  test('with its large binaries out of line, wherever they are', () => {
    fc.assert(
      fc.property(values.filter(wellFormed), fc.integer({ min: 1, max: 30 }), (value, gatherBytes) => {
        expect(type.decode(gathered(value, gatherBytes).bytes)).toEqual(value);
      }),
    );
  });

  test('is plain MessagePack without large binaries', () => {
    const value = { a: [1, 'b', null], c: new Uint8Array([1, 2]) };
    expect(
      Buffer.compare(type.encode(value), new Packr({ variableMapSize: true, useRecords: false }).pack(value)),
    ).toBe(0);
  });

  test('binaries are Uint8Arrays with their own memory, even when a Buffer was sent', () => {
    const bytes = type.encode({ small: Buffer.from('abc') });
    const { small } = type.decode(bytes) as { small: Uint8Array };
    expect(small.constructor).toBe(Uint8Array);
    bytes.fill(0);
    expect([...small]).toEqual([97, 98, 99]);
  });

  test('large binaries of a bulk message are views, and are counted', () => {
    const value = { first: new Uint8Array(100).fill(1), deep: [{ second: new Uint8Array(200).fill(2) }] };
    const { bytes, outOfLine } = gathered(value, 50);
    expect(outOfLine).toBe(2);
    const source = new Source();
    source.leaseBytes = 50;
    source.reset(bytes);
    const back = type.decodeFrom(source, 0, bytes.length) as typeof value;
    expect(back).toEqual(value);
    expect(source.leases).toBe(2);
    expect(back.first.buffer).toBe(bytes.buffer);
  });

  test('any number of large binaries is allowed', () => {
    const value = Array.from({ length: 40 }, (_, i) => new Uint8Array(50).fill(i));
    const { bytes, outOfLine } = gathered(value, 50);
    expect(outOfLine).toBe(40);
    expect(type.decode(bytes)).toEqual(value);
  });

  test("the caller's objects are unchanged", () => {
    const value = Object.freeze({ list: Object.freeze([new Uint8Array(100)]) });
    gathered(value, 50);
    expect(value.list[0]).toHaveLength(100);
  });

  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
  test.each<[string, unknown]>([
    ['65,535 fields', fields(65_535)],
    ['65,536 fields', fields(65_536)],
    ['70,000 fields, in an object', { a: [fields(70_000)] }],
    ['a field toJSON', { toJSON: 'x', a: 1 }],
    ['a field toJSON that is an object', { toJSON: { b: 1 }, a: 1 }],
    ['fields toJSON and constructor', { constructor: 1, toJSON: 'x', a: 1 }],
    ['a field constructor like a class', { constructor: { name: 'Map' } }],
    ['length, valueOf', { length: 3, valueOf: 1, hasOwnProperty: 2 }],
    [
      'the first and the last Date',
      [new Date(-8.64e15), new Date(8.64e15), new Date(-1), new Date(2 ** 34 * 1000)],
    ],
  ])('%s', (_, value) => {
    expect(type.decode(type.encode(value))).toEqual(value);
    const beside = { value, large: new Uint8Array(100).fill(3) };
    expect(type.decode(gathered(beside, 50).bytes)).toEqual(beside);
  });

  test('an object may have no prototype, or a field toJSON', () => {
    expect(type.decode(type.encode(Object.assign(Object.create(null), { toJSON: 'x' })))).toEqual({
      toJSON: 'x',
    });
  });
});

const cycle: unknown[] = [];
cycle.push(cycle);
describe('an error names the position of a value that cannot be sent', () => {
  test.each<[string, unknown, RegExp]>([
    ['a function', { a: [() => 0] }, /test\.a\[0\]: a function cannot be sent/],
    ['a symbol', Symbol('x'), /test: a symbol cannot be sent/],
    ['a key __proto__', { a: JSON.parse('{"__proto__": 1}') }, /test\.a: a key __proto__ cannot travel/],
    ['half a character', ['x\ud800'], /test\[0\]: half of a surrogate pair cannot be sent/],
    ['half a character in a key', { 'x\udc00': 1 }, /test: a key with half of a surrogate pair/],
    ['a Map', new Map(), /Map cannot be sent; give plain objects/],
    ['another typed array', { a: new Float64Array(2) }, /test\.a: Float64Array cannot be sent/],
    ['an object of a class', { a: new (class Thing {})() }, /Thing cannot be sent/],
    ['an invalid Date', [new Date(Number.NaN)], /an invalid Date/],
    ['a bigint that is too long', 2n ** 64n, /more than 64 bits/],
    ['a cycle', cycle, /nested deeper than 100/],
  ])('%s', (_, value, text) => {
    expect(() => type.encode(value)).toThrow(CodecError);
    expect(() => type.encode(value)).toThrow(text);
  });
});

describe('bytes of a hostile peer', () => {
  const bytesOf = (...parts: (number | Uint8Array)[]) =>
    new Uint8Array(
      Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.from([part]) : part))),
    );
  const lifted = (body: unknown, ...rest: Uint8Array[]) => {
    const packed = pack(body);
    const head = Buffer.alloc(5, 0xc1);
    head.writeUInt32LE(packed.byteLength, 1);
    return new Uint8Array(Buffer.concat([head, packed, ...rest]));
  };
  const one = new Uint8Array([1]);

  test.each<[string, Uint8Array, RegExp]>([
    ['nothing', bytesOf(), /ends in the middle/],
    ['half a string', bytesOf(0xd9, 200, 65), /ends in the middle/],
    ['a value and more', bytesOf(1, 2), /bytes behind the value/],
    ['an array of four thousand million', bytesOf(0xdd, 255, 255, 255, 255), /too short for an array of/],
    [
      'arrays of millions in arrays',
      bytesOf(...Array(50).fill([0xdd, 1, 0, 0, 0]).flat()),
      /too short for an array of/,
    ],
    ['an object of millions', bytesOf(0xdf, 1, 0, 0, 0), /too short for an object of/],
    ['arrays in arrays in arrays', bytesOf(...Array(5000).fill(0x91), 1), /nested deeper than 100/],
    ['a key that is a number', bytesOf(0x81, 1, 1), /a key that is no string/],
    ['an extension of msgpackr', bytesOf(0xd4, 0x72, 0x40), /extension 114/],
    ['a key __proto__', pack(JSON.parse('{"__proto__": {"polluted": true}}')), /a key __proto__/],
    ['__proto__ further in', pack([{ a: JSON.parse('{"__proto__": 1}') }]), /a key __proto__/],
    ['no UTF-8', bytesOf(0xa2, 0xff, 0xfe), /a string that is not UTF-8/],
    ['no UTF-8 behind ASCII', bytesOf(0xa3, 0x61, 0x62, 0xc3), /a string that is not UTF-8/],
    [
      'no UTF-8 in a long text',
      bytesOf(0xd9, 200, ...Array(199).fill(0x61), 0xff),
      /a string that is not UTF-8/,
    ],
    ['half a surrogate pair', bytesOf(0xa3, 0xed, 0xa0, 0x80), /a string that is not UTF-8/],
    ['no UTF-8 in a key', bytesOf(0x81, 0xa1, 0xff, 1), /a string that is not UTF-8/],
    [
      'a second of 1,000,000,000 ns',
      bytesOf(0xd7, 0xff, 0xee, 0x6b, 0x28, 0, 0, 0, 0, 1),
      /1000000000 nanoseconds/,
    ],
    [
      'more nanoseconds',
      bytesOf(0xc7, 12, 0xff, 0x3b, 0x9a, 0xca, 0, ...Array(8).fill(0)),
      /1000000000 nanoseconds/,
    ],
    [
      'a time that no Date holds',
      bytesOf(0xc7, 12, 0xff, 0, 0, 0, 0, 0, 0, 0x07, 0xdb, 0xa8, 0x21, 0x80, 1),
      /a timestamp that no Date can hold/,
    ],
    [
      'a time long before',
      bytesOf(0xc7, 12, 0xff, 0, 0, 0, 0, 0x80, ...Array(7).fill(0)),
      /no Date can hold/,
    ],
    ['a time of one byte', bytesOf(0xd4, 0xff, 0), /extension 255 of 1 bytes/],
    ['a lifted head cut off', bytesOf(0xc1, 1, 0), /ends in the middle/],
    ['a lifted body cut off', bytesOf(0xc1, 200, 0, 0, 0, 1), /ends in the middle/],
    ['a lifted body without a list', lifted([1]), /the list of its binary values is missing/],
    ['a list of something else', lifted([{ a: null }, [1]]), /the list of its binary values is wrong/],
    [
      'a binary that is longer',
      lifted([{ a: null }, [[['a'], 2]]], one),
      /the list of its binary values is wrong/,
    ],
    [
      'a negative length',
      lifted([{ a: null }, [[['a'], -1]]], one),
      /the list of its binary values is wrong/,
    ],
    ['bytes that nobody asked for', lifted([{ a: null }, []], one), /bytes behind the value/],
    ['a path to where nothing is', lifted([{ a: null }, [[['b'], 1]]], one), /leads nowhere/],
    ['a path to what is there', lifted([{ a: 5 }, [[['a'], 1]]], one), /leads nowhere/],
    ['a path through the prototype', lifted([{}, [[['__proto__', 'x'], 1]]], one), /leads nowhere/],
    ['a path to the length of a list', lifted([[null], [[['length'], 1]]], one), /leads nowhere/],
    ['a path that is none', lifted([{ a: null }, [['a', 1]]], one), /leads nowhere/],
    ['a path of objects', lifted([{ a: null }, [[[{}], 1]]], one), /leads nowhere/],
    [
      'the same place twice',
      lifted(
        [
          { a: null },
          [
            [['a'], 1],
            [['a'], 0],
          ],
        ],
        one,
      ),
      /leads nowhere/,
    ],
  ])('%s', (_, bytes, text) => {
    expect(() => type.decode(bytes)).toThrow(CodecError);
    expect(() => type.decode(bytes)).toThrow(text);
  });

  /** Returns an array of `count` times the bytes that `element` returns. */
  function many(count: number, element: (i: number) => Iterable<number>): Uint8Array {
    const bytes = Buffer.concat(Array.from({ length: count }, (_, i) => Uint8Array.from(element(i))));
    const head = bytesOf(0xdd, 0, 0, 0, 0);
    new DataView(head.buffer).setUint32(1, count);
    return Buffer.concat([head, bytes]);
  }
  const key = (i: number) => {
    const text = i.toString(36);
    return [0xa0 + text.length, ...Buffer.from(text)];
  };
  test.each<[string, () => Uint8Array, count: number]>([
    ['empty objects', () => new Uint8Array(5_000_000).fill(0x80), 0],
    ['empty arrays', () => new Uint8Array(6_000_000).fill(0x90), 0],
    ['numbers', () => new Uint8Array(34_000_000).fill(1), 0],
    ['empty binaries', () => many(1_300_000, () => [0xc4, 0]), 1],
    ['times', () => many(2_200_000, () => [0xd6, 0xff, 0, 0, 0, 1]), 1],
    ['objects with a key of their own each', () => many(300_000, (i) => [0x81, ...key(i), 1]), 1],
  ])('more memory than bytes: %s', (_, make, headed) => {
    const bytes = make();
    if (headed === 0) {
      bytes[0] = 0xdd;
      new DataView(bytes.buffer, bytes.byteOffset).setUint32(1, bytes.length - 5);
    }
    expect(() => type.decode(bytes)).toThrow(
      /more than 256 MiB of memory when it is decoded: send several messages/,
    );
  });

  test.each<[string, () => unknown]>([
    [
      'a table of 100,000 rows',
      () => Array.from({ length: 100_000 }, (_, i) => ({ id: i, name: `n${i}`, on: true, at: i / 3 })),
    ],
    [
      'a dictionary of 200,000 words',
      () => Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`word ${i}`, i])),
    ],
    ['a million numbers', () => Array.from({ length: 1_000_000 }, (_, i) => i)],
  ])('what applications send is far from that: %s', (_, make) => {
    const value = make();
    expect(type.decode(type.encode(value))).toEqual(value);
  });

  test('any bytes are a value or a CodecError', () => {
    const decode = (bytes: Uint8Array) => {
      try {
        type.decode(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(CodecError);
      }
    };
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), decode), { numRuns: runs(2000) });
    fc.assert(
      fc.property(
        values.filter(wellFormed),
        fc.nat(),
        fc.nat(255),
        fc.boolean(),
        (value, where, byte, apart) => {
          const bytes = apart ? gathered(value, 3).bytes : type.encode(value);
          if (bytes.length > 0) bytes[where % bytes.length] = byte;
          decode(bytes);
        },
      ),
      { numRuns: runs(2000) },
    );
  });
});
