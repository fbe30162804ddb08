/**
 * Tests metadata as users see it, and its wire form. The tests check which entries are refused, and the
 * reasons.
 */
import { inspect } from 'node:util';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Metadata, receivedMetadata } from '../../runtime/core/metadata.ts';
import {
  decodeMetadata,
  decodeResponseMetadata,
  encodeMetadata,
  encodeResponseMetadata,
  metadataFault,
} from '../../runtime/core/metadata-wire.ts';
import { metadataBytes, metadataEntries } from '../../runtime/limits.ts';

const bytes = (...parts: (number | string)[]): Uint8Array =>
  new Uint8Array(
    Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : Buffer.from(part)))),
  );

describe('Metadata', () => {
  test('keys are case-insensitive, values keep their order', () => {
    const metadata = new Metadata({ 'X-Trace': 'a' }).append('x-trace', 'b').set('other', 'c');
    expect(metadata.get('x-TRACE')).toBe('a');
    expect(metadata.getAll('x-trace')).toEqual(['a', 'b']);
    expect([...metadata]).toEqual([
      ['x-trace', 'a'],
      ['x-trace', 'b'],
      ['other', 'c'],
    ]);
    expect(metadata.delete('X-Trace')).toBe(true);
    expect(metadata.delete('X-Trace')).toBe(false);
    expect(metadata.has('x-trace')).toBe(false);
    expect(metadata.size).toBe(1);
  });

  test('console.log shows its contents', () => {
    expect(inspect({ trailer: new Metadata({ hint: 'a', 'id-bin': Uint8Array.of(1) }) })).toBe(
      "{ trailer: { hint: [ 'a' ], 'id-bin': [ 'AQ==' ] } }",
    );
  });

  test('set replaces all values of a key', () => {
    const metadata = new Metadata([
      ['k', '1'],
      ['k', '2'],
    ]).set('k', '3');
    expect(metadata.getAll('k')).toEqual(['3']);
  });

  test('is created from an object, pairs or another one', () => {
    const one = new Metadata({ a: ['1', '2'], 'b-bin': Uint8Array.of(1) });
    expect([...new Metadata(one)]).toEqual([...one]);
    expect(one.getAll('a')).toEqual(['1', '2']);
  });

  test.each([
    ['an empty key', '', 'v', /metadata key ""/],
    ['a space', 'a b', 'v', /use 1 to 255/],
    ['a character outside ASCII', 'schlüssel', 'v', /use 1 to 255/],
    ['a key of 256', 'k'.repeat(256), 'v', /use 1 to 255/],
    ['bytes under a text key', 'k', Uint8Array.of(1), /takes a string/],
    ['text under a -bin key', 'k-bin', 'v', /takes a Uint8Array/],
    ['a number', 'k', 7 as unknown as string, /takes a string/],
  ])('refuses %s', (_, key, value, message) => {
    expect(() => new Metadata().set(key, value)).toThrow(message);
    expect(() => new Metadata().append(key, value)).toThrow(message);
  });

  test('takes bytes of another realm, as tests that run in a vm context have', () => {
    const foreign = runInNewContext('Uint8Array.of(1, 2)') as Uint8Array;
    expect(encodeMetadata(new Metadata({ 'k-bin': foreign }))).toEqual(bytes(5, 'k-bin', 2, 0, 1, 2));
    expect(receivedMetadata([['k-bin', foreign]]).size).toBe(1);
  });

  test('refuses objects that only have the prototype of bytes', () => {
    const disguised = Object.create(Uint8Array.prototype) as Uint8Array;
    expect(() => new Metadata({ 'k-bin': disguised })).toThrow(/takes a Uint8Array/);
  });

  test('refuses entry 65', () => {
    const metadata = new Metadata();
    for (let i = 0; i < metadataEntries; ++i) metadata.append('k', 'v');
    expect(() => metadata.append('k', 'v')).toThrow(/64 entries already/);
  });
});

describe('the wire form', () => {
  test('is key length, key, value length, value', () => {
    const wire = encodeMetadata(new Metadata({ ab: 'xyz', 'c-bin': Uint8Array.of(9, 8) }));
    expect(wire).toEqual(bytes(2, 'ab', 3, 0, 'xyz', 5, 'c-bin', 2, 0, 9, 8));
  });

  test('is not affected by values that encode other metadata while they are measured', () => {
    class Calling extends Uint8Array {
      override get length(): number {
        encodeMetadata(new Metadata({ of: 'another call' }));
        return 3;
      }
    }
    const wire = encodeMetadata(new Metadata([['a', 'b'] as const, ['c-bin', new Calling(2)] as const]));
    expect(wire).toEqual(bytes(1, 'a', 1, 0, 'b', 5, 'c-bin', 2, 0, 0, 0));
  });

  test('is correct after any number of others', () => {
    const wires = Array.from({ length: 200 }, (_, i) =>
      encodeMetadata(new Metadata({ k: `${i}`.repeat(300) })),
    );
    for (const [i, wire] of wires.entries())
      expect(decodeMetadata(wire, 0, wire.byteLength).get('k')).toBe(`${i}`.repeat(300));
  });

  test.each([
    ['36 characters', 'x'.repeat(36)],
    ['37 characters', 'x'.repeat(37)],
    ['characters of three bytes', '\u20ac'.repeat(40)],
    ['half a pair', 'a\ud800b'],
    ['8 KiB less what is around it', 'x'.repeat(metadataBytes - 4)],
    ['2,729 characters of three bytes', '\u20ac'.repeat(2729)],
  ])('has a value of %s as Node writes it', (_, value) => {
    const wire = encodeMetadata(new Metadata({ k: value }));
    expect(Buffer.from(wire.subarray(4))).toEqual(Buffer.from(value));
    expect(decodeMetadata(wire, 0, wire.byteLength).get('k')).toBe(Buffer.from(value).toString());
  });

  test('a key is decoded as itself after any other keys (property)', () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[0-9a-z_.-]{1,70}$/), { maxLength: 60 }), (names) => {
        const wire = encodeMetadata(
          new Metadata(names.filter((name) => !name.endsWith('-bin')).map((name) => [name, name] as const)),
        );
        for (const [key, value] of decodeMetadata(wire, 0, wire.byteLength)) expect(key).toBe(value);
      }),
      { seed: 9, numRuns: 300 },
    );
  });

  test('is refused beyond 8 KiB, with the limit in the error', () => {
    const metadata = new Metadata({ k: 'v'.repeat(metadataBytes) });
    expect(() => encodeMetadata(metadata)).toThrow(/larger than 8192 bytes/);
  });

  test.each([
    ['a key cut off', bytes(5, 'ab'), /cut off in a key/],
    ['no room for the value length', bytes(1, 'a', 0), /cut off in a key/],
    ['a value cut off', bytes(1, 'a', 3, 0, 'xy'), /cut off in a value/],
    ['a value length that is a lie', bytes(1, 'a', 255, 255, 'xy'), /cut off in a value/],
    ['an empty key', bytes(0, 1, 0, 'x'), /empty metadata key/],
    ['an upper-case key', bytes(1, 'A', 0, 0), /character that is not allowed/],
    ['a zero byte in a key', bytes(1, 0, 0, 0), /character that is not allowed/],
    ['too many entries', bytes(...new Array<string>(65).fill('\x01k\0\0')), /more than 64/],
    ['too many bytes', new Uint8Array(metadataBytes + 1), /limit is 8192/],
  ])('with %s is refused', (_, wire, reason) => {
    expect(metadataFault(wire, 0, wire.byteLength)).toMatch(reason);
  });

  const key = fc.stringMatching(/^[0-9a-z_.-]{1,20}$/);
  const entry = key.chain((name) =>
    fc.tuple(
      fc.constant(name),
      name.endsWith('-bin')
        ? fc.uint8Array({ maxLength: 50 })
        : fc.string({ maxLength: 50, unit: 'grapheme' }),
    ),
  );

  test('is decoded as it was encoded (property)', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 30 }), (entries) => {
        const wire = encodeMetadata(new Metadata(entries));
        const padded = new Uint8Array(wire.byteLength + 7).fill(0xff);
        padded.set(wire, 3);
        expect(metadataFault(padded, 3, 3 + wire.byteLength)).toBe('');
        expect([...decodeMetadata(padded, 3, 3 + wire.byteLength)]).toEqual(entries);
      }),
      { seed: 7, numRuns: 300 },
    );
  });

  test('arbitrary bytes are refused with a reason or decoded, nothing else (property)', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (wire) => {
        const fault = metadataFault(wire, 0, wire.byteLength);
        if (fault === '') decodeMetadata(wire, 0, wire.byteLength);
        else expect(fault.length).toBeGreaterThan(5);
      }),
      { seed: 8, numRuns: 2000 },
    );
  });
});

describe('of a response', () => {
  const header = new Metadata({ region: 'north', 'id-bin': Uint8Array.of(1) });
  const trailer = new Metadata({ cost: ['1', '2'] });

  test.each([
    ['nothing', undefined, undefined],
    ['empty ones', new Metadata(), new Metadata()],
  ])('%s takes no bytes', (_, given, behind) => {
    expect(encodeResponseMetadata(given, behind)).toBeUndefined();
  });

  test.each([
    ['a header', header, undefined],
    ['a trailer', undefined, trailer],
    ['both', header, trailer],
  ])('%s is received unchanged', (_, given, behind) => {
    const wire = encodeResponseMetadata(given, behind)!;
    expect(metadataFault(wire, 0, wire.byteLength, true)).toBe('');
    const back = decodeResponseMetadata(wire, 0, wire.byteLength);
    expect(back.header && [...back.header]).toEqual(given && [...given]);
    expect(back.trailer && [...back.trailer]).toEqual(behind && [...behind]);
  });

  test('an entry of the header has a colon in front of its key; a request must not have one', () => {
    const wire = encodeResponseMetadata(new Metadata({ k: 'v' }), undefined)!;
    expect(wire).toEqual(bytes(2, ':k', 1, 0, 'v'));
    expect(metadataFault(wire, 0, wire.byteLength)).toMatch(/not allowed/);
  });

  test.each([
    ['a colon alone', bytes(1, ':', 0, 0)],
    ['two colons', bytes(3, '::k', 0, 0)],
    ['a colon inside', bytes(3, 'k:k', 0, 0)],
  ])('%s is refused', (_, wire) => {
    expect(metadataFault(wire, 0, wire.byteLength, true)).toMatch(/not allowed/);
  });

  test('a key of 255 characters has no room for the colon, and the error says so', () => {
    const longest = 'k'.repeat(255);
    expect(() => encodeResponseMetadata(new Metadata({ [longest]: 'v' }), undefined)).toThrow(
      /a header's has at most 254 characters/,
    );
    const wire = encodeResponseMetadata(undefined, new Metadata({ [longest]: 'v' }))!;
    expect(decodeResponseMetadata(wire, 0, wire.byteLength).trailer?.get(longest)).toBe('v');
  });

  test('header and trailer share the limits', () => {
    const many = new Metadata(Array.from({ length: 33 }, (_, i) => [`k${i}`, 'v'] as const));
    expect(() => encodeResponseMetadata(many, many)).toThrow(/more than 64 entries/);
    const long = new Metadata({ k: 'v'.repeat(5000) });
    expect(() => encodeResponseMetadata(long, long)).toThrow(/larger than 8192 bytes/);
  });
});
