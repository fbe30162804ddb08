/** Decodes encodings that our own encoder would never write. The encodings are written in hexadecimal. */

import { CodecError, type MessageType, Source } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { JsTypes, Maps, Oneofs, Optionals, Packed, Scalars, Tree } from './gen/everything.rdma.ts';

const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'));

function refusal(type: MessageType<unknown, unknown>, bytes: Uint8Array): CodecError {
  try {
    type.decode(bytes);
  } catch (error) {
    if (error instanceof CodecError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

describe('the decoder accepts', () => {
  test.each([
    ['an empty message', Scalars, '', {}],
    ['several values of a field, of which the last counts', Scalars, '18 05 18 07', { fInt32: 7 }],
    ['a negative int32 in ten bytes', Scalars, '18 ffffffffffffffffff01', { fInt32: -1 }],
    ['a negative int32 in five bytes', Scalars, '18 ffffffff0f', { fInt32: -1 }],
    ['an int32 that is too wide, of which the low bits count', Scalars, '18 8580808010', { fInt32: 5 }],
    [
      'a uint32 that is too wide, of which the low bits count',
      Scalars,
      '20 ffffffffffffffffff01',
      { fUint32: 4294967295 },
    ],
    ['an over-long zero', Scalars, '18 80808080808080808000', { fInt32: 0 }],
    ['an over-long tag', Scalars, '9800 05', { fInt32: 5 }],
    ['a boolean of 2^40', Scalars, '68 808080808040', { fBool: true }],
    ['a boolean of an over-long zero', Scalars, '68 8000', { fBool: false }],
    ['an unknown enum value', Scalars, '8001 2a', { fEnum: 42 }],
    ['a negative enum value', Scalars, '8001 ffffffffffffffffff01', { fEnum: -1 }],
    ['the smallest int64', Scalars, '40 80808080808080808001', { fInt64: -(2n ** 63n) }],
    ['the largest uint64', Scalars, '48 ffffffffffffffffff01', { fUint64: 2n ** 64n - 1n }],
    ['the smallest sint64', Scalars, '50 ffffffffffffffffff01', { fSint64: -(2n ** 63n) }],
    ['the smallest sint32', Scalars, '28 ffffffff0f', { fSint32: -(2 ** 31) }],
    ['minus zero', Scalars, '09 0000000000000080', { fDouble: -0 }],
    ['NaN', Scalars, '15 0000c07f', { fFloat: Number.NaN }],
    [
      'two halves of a message, which are merged',
      Scalars,
      '8a01 02 1805 8a01 02 2006',
      { fMessage: { fInt32: 5, fUint32: 6 } },
    ],
    ['a replacement character', Scalars, '72 03 efbfbd', { fString: '\ufffd' }],
    ['a byte order mark', Scalars, '72 04 efbbbf 61', { fString: '\ufeffa' }],
    ['default values of fields with presence', Optionals, '18 00 72 00', { fInt32: 0, fString: '' }],
    ['single values for a packed field', Packed, '18 01 18 02', { fInt32: [1, 2] }],
    ['a packed run and single values mixed', Packed, '18 01 1a 02 0203 18 04', { fInt32: [1, 2, 3, 4] }],
    ['an empty packed run', Packed, '1a 00', { fInt32: [] }],
    ['packed booleans', Packed, '6a 03 000102', { fBool: [false, true, true] }],
    ['a map entry without key', Maps, '0a 03 12 01 61', { byInt32: { 0: 'a' } }],
    ['a map entry without value', Maps, '0a 02 08 05', { byInt32: { 5: '' } }],
    ['an empty map entry', Maps, '62 00', { byString: { '': {} } }],
    ['a map entry with its value first', Maps, '0a 05 12 01 61 08 05', { byInt32: { 5: 'a' } }],
    ['a map entry with an unknown field', Maps, '0a 07 08 05 18 01 12 01 61', { byInt32: { 5: 'a' } }],
    [
      'two entries with the same key, of which the last counts',
      Maps,
      '0a 05 08 05 12 01 61 0a 05 08 05 12 01 62',
      { byInt32: { 5: 'b' } },
    ],
    [
      'two fields of a oneof, of which the last counts',
      Oneofs,
      '10 05 1a 01 61',
      { choice: { case: 'text', value: 'a' } },
    ],
    [
      'two halves of a message in a oneof, which are merged',
      Oneofs,
      '3a 02 1805 3a 02 2006',
      { choice: { case: 'message', value: { fInt32: 5, fUint32: 6 } } },
    ],
    [
      'a message after another field of its oneof, which is not merged',
      Oneofs,
      '3a 02 1805 10 01 3a 02 2006',
      { choice: { case: 'message', value: { fInt32: 0, fUint32: 6 } } },
    ],
    ['an unknown varint of the largest number', Scalars, 'f8ffffff0f 05 18 05', { fInt32: 5 }],
    ['an unknown varint', Scalars, '9206 00 b006 8001 18 05', { fInt32: 5 }],
    [
      'an unknown field of every kind',
      Scalars,
      'b006 01 b106 0000000000000000 b206 02 0000 b506 00000000 18 05',
      { fInt32: 5 },
    ],
    [
      'an unknown group with fields and a group in it',
      Scalars,
      'b306 0801 bb06 12 01 00 bc06 b406 18 05',
      { fInt32: 5 },
    ],
    [
      'a known field with another wire type, which is skipped',
      Scalars,
      '1a 01 00 20 06',
      { fInt32: 0, fUint32: 6 },
    ],
    ['the highest field number', Oneofs, 'f8ffffff0f 07', { behind: 7 }],
    ['jstype', JsTypes, '08 01 10 02 18 03', { asString: '1', asNumber: 2, asBigint: 3n }],
  ] as const)('%s', (_what, type, encoding, expected) => {
    expect((type as MessageType<unknown>).decode(hex(encoding))).toMatchObject(expected);
  });

  test('map keys with a special meaning in JavaScript are ordinary keys', () => {
    const labels = Object.fromEntries(['__proto__', 'constructor', 'toString'].map((key) => [key, 'mine']));
    Object.defineProperty(labels, '__proto__', { value: 'mine', enumerable: true });
    const decoded = Maps.decode(Maps.encode({ textByString: labels })).textByString;
    expect(Object.keys(decoded).sort()).toEqual(['__proto__', 'constructor', 'toString']);
    expect(Object.values(decoded)).toEqual(['mine', 'mine', 'mine']);
    expect(({} as Record<string, unknown>).mine).toBeUndefined();
    expect(Object.keys(Maps.create({ textByString: decoded }).textByString)).toContain('__proto__');
  });
});

/** Returns a message nested `depth` times, written from the inside out. */
function nest(tag: number, depth: number): Uint8Array {
  const reversed: number[] = [];
  for (let i = 0; i < depth; i++) {
    const length: number[] = [];
    for (let rest = reversed.length; rest > 127; rest >>>= 7) length.push((rest & 127) | 128);
    length.push(reversed.length >>> (7 * length.length));
    reversed.push(...length.reverse(), tag);
  }
  return new Uint8Array(reversed.reverse());
}

describe('the decoder refuses', () => {
  test.each([
    ['a tag and nothing else', Scalars, '18', 1, /ends inside a varint/],
    ['a varint that does not end', Scalars, '18 80', 2, /ends inside a varint/],
    ['a tag that does not end', Scalars, '80', 1, /ends inside a varint/],
    ['a varint of eleven bytes', Scalars, '18 8080808080808080808001', 11, /more than 10 bytes/],
    ['an unknown varint of eleven bytes', Scalars, 'b006 8080808080808080808001', 12, /more than 10 bytes/],
    ['a tag of more than 32 bits', Scalars, '88808080 10 00', 0, /tag is wider/],
    ['a tag of more than 5 bytes', Scalars, '988080808000 05', 0, /tag is wider/],
    ['field number 0', Scalars, '00 01', 1, /field number 0/],
    ['wire type 6', Scalars, '1e 00', 1, /wire type 6/],
    ['wire type 7', Scalars, '1f 00', 1, /wire type 7/],
    ['a string longer than the message', Scalars, '72 05 6162', 1, /length of 5 runs past/],
    ['a length without content', Scalars, '72 01', 1, /length of 1 runs past/],
    ['a length that is missing', Scalars, '72', 1, /ends inside a varint|past the end/],
    ['a length of more than 32 bits', Scalars, '72 8080808010', 1, /length is wider/],
    ['a length of 2^32 - 1', Scalars, '72 ffffffff0f', 1, /length of 4294967295 runs past/],
    ['half a double', Scalars, '09 00000000', 1, /fixed-width/],
    ['half a fixed32', Scalars, '35 0000', 1, /fixed-width/],
    [
      'an unknown wire type of the largest number',
      Scalars,
      'feffffff0f 00',
      5,
      /wire type 6 of field 536870911/,
    ],
    ['half an unknown fixed64', Scalars, 'b106 0000', 2, /fixed-width/],
    ['an unknown field longer than the message', Scalars, 'b206 05 00', 2, /length of 5 runs past/],
    ['a message longer than the one around it', Tree, '22 03 22 02 00 00', 3, /length of 2 runs past/],
    ['a message that ends inside a field', Tree, '22 01 22 00', 3, /ends inside a varint|past the end/],
    ['a packed run that ends inside a number', Packed, '1a 01 80 01', 3, /ends inside a varint/],
    ['a packed run that ends inside a double', Packed, '0a 04 00000000', 2, /fixed-width/],
    ['a map entry that ends inside its key', Maps, '0a 01 08 05', 3, /ends inside a varint|past the end/],
    ['a group that never began', Scalars, '1c', 1, /never began/],
    ['a group that never ends', Scalars, 'b306 0801', 4, /has no end/],
    ['a group closed by another', Scalars, 'b306 bc06', 4, /closed by field 103/],
    ['a lone continuation byte', Scalars, '72 01 80', 2, /invalid UTF-8/],
    ['an over-long slash', Scalars, '72 02 c0af', 2, /invalid UTF-8/],
    ['a surrogate', Scalars, '72 03 eda080', 2, /invalid UTF-8/],
    ['a character beyond Unicode', Scalars, '72 04 f4908080', 2, /invalid UTF-8/],
    ['a cut character', Scalars, '72 02 e282', 2, /invalid UTF-8/],
    ['an invalid key of a map', Maps, '62 03 0a 01 ff', 4, /invalid UTF-8/],
    ['an invalid character next to a replacement character', Scalars, '72 04 efbfbd ff', 2, /invalid UTF-8/],
    ['an invalid character in a long string', Scalars, `72 40 ${'61'.repeat(63)} ff`, 2, /invalid UTF-8/],
  ] as const)('%s', (_what, type, encoding, offset, reason) => {
    const error = refusal(type as MessageType<unknown, unknown>, hex(encoding));
    expect(error.reason).toMatch(reason);
    expect(error.offset).toBe(offset);
    expect(error.path).toBe(type.typeName);
    expect(error.message).toBe(`${error.path}: ${error.reason} (at byte ${error.offset})`);
  });

  test('messages nested more than 100 deep', () => {
    expect(() => Tree.decode(nest(0x22, 100))).not.toThrow();
    expect(refusal(Tree as MessageType<unknown, unknown>, nest(0x22, 101)).reason).toMatch(
      /more than 100 deep/,
    );
    expect(refusal(Tree as MessageType<unknown, unknown>, nest(0x22, 50_000)).reason).toMatch(
      /more than 100 deep/,
    );
  });

  test('groups nested more than 100 deep', () => {
    const groups = (depth: number) => hex('0b'.repeat(depth) + '0c'.repeat(depth));
    expect(() => Scalars.decode(groups(100))).not.toThrow();
    expect(refusal(Scalars as MessageType<unknown, unknown>, groups(101)).reason).toMatch(
      /more than 100 deep/,
    );
    expect(refusal(Scalars as MessageType<unknown, unknown>, groups(50_000)).reason).toMatch(
      /more than 100 deep/,
    );
  });
});

describe('the source of a message', () => {
  const encoded = Scalars.encode({ fBytes: new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]), fInt32: 9 });
  const memory = new Uint8Array(64).fill(0xff);
  memory.set(encoded, 20);

  test('reads its range of the memory and nothing around it', () => {
    const source = new Source();
    source.reset(memory);
    expect(Scalars.decodeFrom(source, 20, 20 + encoded.length)).toMatchObject({ fInt32: 9 });
    for (let length = 1; length < encoded.length; length++) {
      if (length === 2) continue; // The first field alone is also a message.
      expect(() => Scalars.decodeFrom(source, 20, 20 + length)).toThrow(CodecError);
    }
  });

  test('counts offsets in errors from the start of the message', () => {
    const source = new Source();
    source.reset(memory);
    try {
      Scalars.decodeFrom(source, 20, 20 + encoded.length - 1);
      expect.unreachable();
    } catch (error) {
      expect((error as CodecError).offset).toBe(3);
    }
  });

  test.each([
    [Number.POSITIVE_INFINITY, false, 0],
    [9, false, 0],
    [8, true, 1],
    [1, true, 1],
  ])('with leaseBytes %d gives a view of the memory: %s', (leaseBytes, view, leases) => {
    const source = new Source();
    source.leaseBytes = leaseBytes;
    source.reset(memory);
    const { fBytes } = Scalars.decodeFrom(source, 20, 20 + encoded.length);
    expect(fBytes.buffer === memory.buffer).toBe(view);
    expect(source.leases).toBe(leases);
    expect([...fBytes]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(fBytes.constructor).toBe(Uint8Array);
  });

  test('decode accepts a Buffer and returns plain copies', () => {
    const { fBytes } = Scalars.decode(Buffer.from(encoded));
    expect(fBytes.constructor).toBe(Uint8Array);
    expect(fBytes.buffer.byteLength).toBe(8);
  });
});
