/** The codec of values without a schema: what comes back, what travels apart, what is refused, and bytes of a hostile peer. */
import fc from 'fast-check';
import { pack } from 'msgpackr';
import { CodecError } from 'rdma-rpc/codec';
import { msgpackType } from 'rdma-rpc/msgpack';
import { describe, expect, test } from 'vitest';
import { Sink } from '../../runtime/codec/sink.ts';
import { Source } from '../../runtime/codec/source.ts';

fc.configureGlobal({ seed: 20_261_121 });

const type = msgpackType<unknown>('test');

/** Encodes as a bulk message is: memory in pieces with the large values between. */
function gathered(value: unknown, gatherBytes: number): { bytes: Uint8Array; holes: number } {
  const sink = new Sink();
  sink.gatherBytes = gatherBytes;
  sink.reset(new Uint8Array(0));
  const room = type.bound(value, sink);
  const memory = new Uint8Array(room);
  sink.reset(memory);
  const end = type.encodeTo(value, sink, 0);
  expect(end).toBeLessThanOrEqual(room);
  const parts: Uint8Array[] = [];
  let from = 0;
  for (let i = 0; i < sink.holes; ++i) {
    parts.push(memory.subarray(from, sink.holeAt[i]), sink.holeValue[i]!);
    from = sink.holeAt[i]!;
  }
  return { bytes: new Uint8Array(Buffer.concat([...parts, memory.subarray(from, end)])), holes: sink.holes };
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
/** Lone surrogates cannot be UTF-8. */
const wellFormed = (value: unknown) =>
  !JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? '' : v))?.includes('\\ud');

describe('a value comes back as it went', () => {
  test('in one piece', () => {
    fc.assert(
      fc.property(values.filter(wellFormed), (value) => {
        expect(type.decode(type.encode(value))).toEqual(value);
      }),
    );
  });

  test('with its large binaries apart, wherever they are', () => {
    fc.assert(
      fc.property(values.filter(wellFormed), fc.integer({ min: 1, max: 30 }), (value, gatherBytes) => {
        expect(type.decode(gathered(value, gatherBytes).bytes)).toEqual(value);
      }),
    );
  });

  test('is plain MessagePack without large binaries', () => {
    const value = { a: [1, 'b', null], c: new Uint8Array([1, 2]) };
    expect(Buffer.compare(type.encode(value), pack(value))).toBe(0);
  });

  test('binaries are Uint8Arrays of their own, a Buffer becomes one', () => {
    const bytes = type.encode({ small: Buffer.from('abc') });
    const { small } = type.decode(bytes) as { small: Uint8Array };
    expect(small.constructor).toBe(Uint8Array);
    bytes.fill(0);
    expect([...small]).toEqual([97, 98, 99]);
  });

  test('large binaries of a bulk message are views, and counted', () => {
    const value = { first: new Uint8Array(100).fill(1), deep: [{ second: new Uint8Array(200).fill(2) }] };
    const { bytes, holes } = gathered(value, 50);
    expect(holes).toBe(2);
    const source = new Source();
    source.leaseBytes = 50;
    source.reset(bytes);
    const back = type.decodeFrom(source, 0, bytes.length) as typeof value;
    expect(back).toEqual(value);
    expect(source.leases).toBe(2);
    expect(back.first.buffer).toBe(bytes.buffer);
  });

  test('any number of large binaries', () => {
    const value = Array.from({ length: 40 }, (_, i) => new Uint8Array(50).fill(i));
    const { bytes, holes } = gathered(value, 50);
    expect(holes).toBe(40);
    expect(type.decode(bytes)).toEqual(value);
  });

  test('the caller keeps its objects as they are', () => {
    const value = Object.freeze({ list: Object.freeze([new Uint8Array(100)]) });
    gathered(value, 50);
    expect(value.list[0]).toHaveLength(100);
  });

  test('a key __proto__ does no harm', () => {
    const bytes = pack(JSON.parse('{"__proto__": {"polluted": true}}'));
    const back = type.decode(new Uint8Array(bytes)) as object;
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

const cycle: unknown[] = [];
cycle.push(cycle);
describe('what cannot be sent says where it is', () => {
  test.each<[string, unknown, RegExp]>([
    ['a function', { a: [() => 0] }, /test\.a\[0\]: a function cannot be sent/],
    ['a symbol', Symbol('x'), /test: a symbol cannot be sent/],
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
    ['an array of four thousand million', bytesOf(0xdd, 255, 255, 255, 255), /that cannot be there/],
    [
      'arrays of millions in arrays',
      bytesOf(...Array(50).fill([0xdd, 1, 0, 0, 0]).flat()),
      /that cannot be there/,
    ],
    ['an object of millions', bytesOf(0xdf, 1, 0, 0, 0), /that cannot be there/],
    ['arrays in arrays in arrays', bytesOf(...Array(5000).fill(0x91), 1), /nested deeper than 100/],
    ['a key that is a number', bytesOf(0x81, 1, 1), /a key that is no string/],
    ['an extension of msgpackr', bytesOf(0xd4, 0x72, 0x40), /extension 114/],
    ['a time of one byte', bytesOf(0xd4, 0xff, 0), /extension 255 of 1 bytes/],
    ['a lifted head cut off', bytesOf(0xc1, 1, 0), /ends in the middle/],
    ['a lifted body cut off', bytesOf(0xc1, 200, 0, 0, 0, 1), /ends in the middle/],
    ['a lifted body without a list', lifted([1]), /no list of binaries/],
    ['a list of something else', lifted([{ a: null }, [1]]), /a binary that is not there/],
    ['a binary that is longer', lifted([{ a: null }, [[['a'], 2]]], one), /a binary that is not there/],
    ['a negative length', lifted([{ a: null }, [[['a'], -1]]], one), /a binary that is not there/],
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

  test('any bytes are a value or a CodecError', () => {
    const decode = (bytes: Uint8Array) => {
      try {
        type.decode(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(CodecError);
      }
    };
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), decode), { numRuns: 2000 });
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
      { numRuns: 2000 },
    );
  });
});
