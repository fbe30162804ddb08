/**
 * Tests generated messages as MessagePack. The decoded values equal those of protobuf, both codecs refuse the
 * same values, and a peer cannot pass values of another type.
 */
import fc from 'fast-check';
import { pack, unpack } from 'msgpackr';
import { CodecError, equals } from 'rdma-rpc/codec';
import { msgpackForm } from 'rdma-rpc/msgpack';
import { describe, expect, test } from 'vitest';
import { type AnyMessage, type AnyType, corpus, initOf } from '../codec/corpus.ts';
import { JsTypes, Maps, Oneofs, Scalars, Tree } from '../codec/gen/everything.rdma.ts';
import { runs } from '../extent.ts';

const packed = (type: AnyType): AnyType => msgpackForm(300, type, type).input;
const any = (type: unknown) => type as AnyType;
/** Returns the reason of the error that an action throws. */
const reasonOf = (action: () => unknown): string => {
  try {
    action();
    return '';
  } catch (error) {
    expect(error).toBeInstanceOf(CodecError);
    return (error as CodecError).message;
  }
};

describe.each(corpus)('$name', ({ ours, theirs }) => {
  const type = packed(ours);

  test('messages are decoded as through protobuf', () => {
    fc.assert(
      fc.property(initOf(theirs), (init) => {
        fc.pre(
          !JSON.stringify(init, (_, value) => (typeof value === 'bigint' ? 0 : value)).includes(
            '"__proto__":',
          ),
        );
        expect(equals(ours, type.decode(type.encode(init)), ours.decode(ours.encode(init)))).toBe(true);
      }),
      { seed: 7, numRuns: runs(30) },
    );
  });

  test('any value of a peer is refused or a message that fits', () => {
    const keys = Object.keys(ours.create());
    const value = fc.oneof(
      { depthSize: 'small' },
      fc.anything({ withBigInt: true, maxDepth: 3 }),
      fc.constantFrom(0, 1, '', 'a', true, null, 5n, [], {}, new Uint8Array(3)),
    );
    const message = keys.length === 0 ? value : fc.dictionary(fc.constantFrom(...keys), value);
    fc.assert(
      fc.property(message, (given) => {
        let bytes: Uint8Array;
        try {
          bytes = pack(given);
        } catch {
          return; // msgpackr cannot write this value.
        }
        let decoded: AnyMessage;
        try {
          decoded = type.decode(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(CodecError);
          return;
        }
        ours.encode(decoded);
      }),
      { seed: 8, numRuns: runs(100) },
    );
  });
});

describe('refused as by protobuf, with the name of the field', () => {
  test.each([
    [/^corpus\.everything\.Scalars\.f_int32: expected a whole number/, Scalars, { fInt32: '5' }],
    [/Scalars\.f_int32/, Scalars, { fInt32: 2 ** 31 }],
    [/Scalars\.f_uint32/, Scalars, { fUint32: -1 }],
    [/Scalars\.f_int64: expected a bigint, got number 5/, Scalars, { fInt64: 5 }],
    [/Scalars\.f_int64/, Scalars, { fInt64: 2n ** 63n }],
    [/Scalars\.f_uint64/, Scalars, { fUint64: -1n }],
    [/Scalars\.f_bool: expected a boolean/, Scalars, { fBool: 1 }],
    [/Scalars\.f_string: expected a string, got number 5/, Scalars, { fString: 5 }],
    [/Scalars\.f_bytes: expected a Uint8Array/, Scalars, { fBytes: 'x' }],
    [/Scalars\.f_double: expected a number/, Scalars, { fDouble: '1' }],
    [/Scalars\.f_enum/, Scalars, { fEnum: 0.5 }],
    [/Scalars: expected an object, got an array/, Scalars, []],
    [/JsTypes\.as_string: expected a string of decimal digits/, JsTypes, { asString: 'x' }],
    [/JsTypes\.as_number/, JsTypes, { asNumber: 2 ** 53 }],
    [/Maps\.text_by_string: expected a plain object/, Maps, { textByString: new Map() }],
    [/Maps\.by_int32: expected a whole number as key/, Maps, { byInt32: { x: 1 } }],
    [
      /Oneofs\.choice: expected the name of one of its fields/,
      Oneofs,
      { choice: { case: 'other', value: 1 } },
    ],
    [/Oneofs\.choice: expected an object with `case` and `value`/, Oneofs, { choice: 5 }],
    [/Tree\.children: expected an array/, Tree, { children: {} }],
    [/Tree\.next: expected an object/, Tree, { next: 'x' }],
  ] as const)('%s', (why, type, message) => {
    const given = message as unknown as AnyMessage;
    expect(reasonOf(() => packed(any(type)).encode(given))).toMatch(why);
    expect(reasonOf(() => any(type).encode(given))).not.toBe('');
  });

  test('a cycle is refused', () => {
    const tree: { next?: object } = {};
    tree.next = tree;
    expect(reasonOf(() => packed(any(Tree)).encode(tree))).toMatch(/nested more than 100 deep/);
  });

  test('a key that would be decoded as another key is refused', () => {
    const map = JSON.parse('{"__proto__": "a"}') as object;
    expect(reasonOf(() => packed(any(Maps)).encode({ textByString: map }))).toMatch(
      /a key __proto__ cannot travel/,
    );
  });
});

describe('a newer peer', () => {
  test('may send unknown fields, which are skipped', () => {
    expect(packed(any(Tree)).decode(pack({ label: 'a', colour: 'red' }))).toEqual(
      Tree.create({ label: 'a' }),
    );
  });

  test('may set an unknown case, and then no case is set', () => {
    const decoded = packed(any(Oneofs)).decode(pack({ choice: { case: 'later', value: 1 } }));
    expect(decoded).toEqual(Oneofs.create());
  });
});

test('unknown fields that a message has kept are sent, and checked', () => {
  const kept = new Uint8Array([0xf8, 0x01, 0x05]);
  const type = packed(any(Tree));
  expect(type.encode({ label: 'a', $unknownFields: kept }).length).toBeGreaterThan(
    type.encode({ label: 'a' }).length,
  );
  expect(reasonOf(() => type.decode(pack({ $unknownFields: new Uint8Array([0x0a, 0x05]) })))).toMatch(
    /truncated|past/,
  );
});

test('fields with their default are not sent', () => {
  expect(unpack(packed(any(Tree)).encode(Tree.create() as unknown as AnyMessage))).toEqual({});
});
