/**
 * Tests packed fields of every type: the written bytes are compared with varints encoded in the simple way,
 * and runs that are long, mixed, broken or segmented are decoded.
 */
import fc from 'fast-check';
import { CodecError } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { Packed } from './gen/everything.rdma.ts';

type Value = number | bigint | boolean;

interface Kind {
  readonly key: string;
  readonly number: number;
  readonly values: fc.Arbitrary<Value>;
  /**
   * A value on the wire, before it is divided into groups of seven bits. Types of fixed width use `fixed`
   * instead.
   */
  readonly wire?: (value: Value) => bigint;
  readonly fixed?: (value: Value) => Uint8Array;
  /** Values that are not valid for the type. */
  readonly wrong: readonly unknown[];
}

/** All lengths of a varint are about equally likely. */
const signed = (bits: number) =>
  fc
    .tuple(fc.bigInt(0n, 2n ** BigInt(bits) - 1n), fc.nat(bits - 1), fc.boolean())
    .map(([value, shift, negative]) => {
      const kept = value >> BigInt(shift + 1);
      return negative ? -kept - 1n : kept;
    });
const unsigned = (bits: number) =>
  fc
    .tuple(fc.bigInt(0n, 2n ** BigInt(bits) - 1n), fc.nat(bits))
    .map(([value, shift]) => value >> BigInt(shift));
const small = (values: fc.Arbitrary<bigint>) => values.map(Number);
const low64 = (value: Value) => BigInt.asUintN(64, BigInt(value));
const zigzag = (value: Value) => {
  const wide = BigInt(value);
  return wide < 0n ? -2n * wide - 1n : 2n * wide;
};
const through =
  (size: number, put: (view: DataView, value: never) => void) =>
  (value: Value): Uint8Array => {
    const view = new DataView(new ArrayBuffer(size));
    put(view, value as never);
    return new Uint8Array(view.buffer);
  };

const whole = ['1', 1.5, Number.NaN, 1n, undefined, null];
const big = [1, '1', 2n ** 64n, -(2n ** 63n) - 1n, 1n << 5000n, undefined, null];
const kinds: readonly Kind[] = [
  { key: 'fInt32', number: 3, values: small(signed(32)), wire: low64, wrong: [2 ** 31, ...whole] },
  { key: 'fUint32', number: 4, values: small(unsigned(32)), wire: low64, wrong: [2 ** 32, -1, ...whole] },
  { key: 'fSint32', number: 5, values: small(signed(32)), wire: zigzag, wrong: [2 ** 31, ...whole] },
  { key: 'fInt64', number: 8, values: signed(64), wire: low64, wrong: [2n ** 63n, ...big] },
  { key: 'fUint64', number: 9, values: unsigned(64), wire: low64, wrong: [-1n, ...big] },
  { key: 'fSint64', number: 10, values: signed(64), wire: zigzag, wrong: [2n ** 63n, ...big] },
  { key: 'fBool', number: 13, values: fc.boolean(), wire: low64, wrong: [0, 1, 'true', undefined, null] },
  {
    key: 'fDouble',
    number: 1,
    values: fc.double(),
    fixed: through(8, (view, value) => view.setFloat64(0, value, true)),
    wrong: ['1', 1n, undefined, null],
  },
  {
    key: 'fFloat',
    number: 2,
    values: fc.float(),
    fixed: through(4, (view, value) => view.setFloat32(0, value, true)),
    wrong: ['1', 1n, undefined, null],
  },
  {
    key: 'fFixed32',
    number: 6,
    values: small(unsigned(32)),
    fixed: through(4, (view, value) => view.setUint32(0, value, true)),
    wrong: [2 ** 32, -1, ...whole],
  },
  {
    key: 'fSfixed32',
    number: 7,
    values: small(signed(32)),
    fixed: through(4, (view, value) => view.setInt32(0, value, true)),
    wrong: [2 ** 31, ...whole],
  },
  {
    key: 'fFixed64',
    number: 11,
    values: unsigned(64),
    fixed: through(8, (view, value) => view.setBigUint64(0, value, true)),
    wrong: [-1n, ...big],
  },
  {
    key: 'fSfixed64',
    number: 12,
    values: signed(64),
    fixed: through(8, (view, value) => view.setBigInt64(0, value, true)),
    wrong: [2n ** 63n, ...big],
  },
];

function varint(value: bigint): number[] {
  const bytes: number[] = [];
  for (; value > 127n; value >>= 7n) bytes.push(Number(value & 127n) | 128);
  return [...bytes, Number(value)];
}

const contentOf = ({ wire, fixed }: Kind, list: readonly Value[]): number[] =>
  list.flatMap((value) => (wire === undefined ? [...(fixed?.(value) ?? [])] : varint(wire(value))));

const run = ({ number }: Kind, content: readonly number[]): number[] => [
  (number << 3) | 2,
  ...varint(BigInt(content.length)),
  ...content,
];

const encode = (kind: Kind, list: readonly unknown[]) => Packed.encode({ [kind.key]: list } as never);
const decode = (kind: Kind, bytes: readonly number[]): Value[] =>
  (Packed.decode(Uint8Array.from(bytes)) as unknown as Record<string, Value[]>)[kind.key]!;

function refusal(action: () => unknown): CodecError {
  try {
    action();
  } catch (error) {
    if (error instanceof CodecError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

/** The lists have up to twice the number of elements that the decoder collects at once. */
const lists = (kind: Kind, minLength = 1) =>
  fc.oneof(
    fc.array(kind.values, { minLength, maxLength: 12 }),
    fc.array(kind.values, { minLength: 100, maxLength: 300, size: 'max' }),
  );
const runs = { seed: 8, numRuns: 60 };

describe.each(kinds)('$key', (kind) => {
  test('is written as the simple encoder writes it, and decoded again', () => {
    fc.assert(
      fc.property(lists(kind), (list) => {
        const bytes = run(kind, contentOf(kind, list));
        expect([...encode(kind, list)]).toEqual(bytes);
        expect(decode(kind, bytes)).toEqual(list);
      }),
      runs,
    );
  });

  test('is decoded from several runs like from one', () => {
    fc.assert(
      fc.property(lists(kind), lists(kind), lists(kind), (a, b, c) => {
        const bytes = [a, b, c].flatMap((list) => run(kind, contentOf(kind, list)));
        expect(decode(kind, bytes)).toEqual([...a, ...b, ...c]);
      }),
      runs,
    );
  });

  test('is a list that no other message shares, without empty elements', () => {
    fc.assert(
      fc.property(lists(kind), lists(kind), (a, b) => {
        const first = decode(kind, run(kind, contentOf(kind, a)));
        const second = decode(kind, run(kind, contentOf(kind, b)));
        expect([first, second]).toEqual([a, b]);
        expect(Object.keys(first)).toHaveLength(a.length);
        first.fill(0);
        expect(decode(kind, run(kind, contentOf(kind, b)))).toEqual(b);
      }),
      runs,
    );
  });

  test('is refused at the position where a run ends inside a value', () => {
    fc.assert(
      fc.property(lists(kind), fc.nat(), (list, cut) => {
        const content = contentOf(kind, list);
        const kept = cut % content.length;
        const whole = list.findIndex((_, i) => contentOf(kind, list.slice(0, i + 1)).length > kept);
        const inside = contentOf(kind, list.slice(0, whole)).length !== kept;
        // A decoder could take the bytes after the value for the rest of it.
        const bytes = [...run(kind, content.slice(0, kept)), 0x18, 1, 0x18, 1, 0x18, 1];
        if (!inside) {
          expect(decode(kind, run(kind, content.slice(0, kept)))).toEqual(list.slice(0, whole));
          return;
        }
        const start = bytes.length - 6 - kept;
        const { reason, offset } = refusal(() => decode(kind, bytes));
        if (kind.wire === undefined) {
          expect(reason).toMatch(/inside a fixed-width field/);
          expect(offset).toBe(start + contentOf(kind, list.slice(0, whole)).length);
        } else {
          expect(reason).toMatch(/ends inside a varint/);
          expect(offset).toBe(start + kept);
        }
      }),
      runs,
    );
  });

  test('is refused when any of its values is wrong', () => {
    fc.assert(
      fc.property(lists(kind), fc.nat(), fc.constantFrom(...kind.wrong), (list, at, wrong) => {
        const spoiled: unknown[] = [...list];
        spoiled[at % list.length] = wrong;
        const { path, reason } = refusal(() => encode(kind, spoiled));
        expect(path).toMatch(/^[\w.]+\.Packed\.f_\w+$/);
        expect(reason).toMatch(/^expected (a bigint|a boolean|a number|a whole number)/);
      }),
      runs,
    );
  });
});

describe.each(kinds.filter(({ wire }) => wire !== undefined))('varints of $key', (kind) => {
  /** Returns encodings of the same value that have more bytes than needed. */
  const padded = (bytes: readonly number[], size: number): number[] =>
    bytes.length >= size
      ? [...bytes]
      : bytes
          .concat(new Array<number>(size - bytes.length).fill(0))
          .map((byte, i) => (i < size - 1 ? byte | 128 : byte));

  test('may be longer than needed', () => {
    const values = fc.tuple(kind.values, fc.integer({ min: 1, max: 10 }));
    fc.assert(
      fc.property(fc.array(values, { minLength: 1, maxLength: 40 }), (list) => {
        const content = list.flatMap(([value, size]) => padded(contentOf(kind, [value]), size));
        expect(decode(kind, run(kind, content))).toEqual(list.map(([value]) => value));
      }),
      runs,
    );
  });

  test.each([0, 1, 20, 127, 128, 129])('of eleven bytes are refused after %i others', (count) => {
    for (const behind of [0, 1, 2, 5, 20]) {
      const before = new Array<number>(count).fill(1);
      const wide = [...new Array<number>(10).fill(255), 1];
      const bytes = run(kind, [...before, ...wide, ...new Array<number>(behind).fill(1)]);
      expect(refusal(() => decode(kind, bytes)).reason).toBe('a varint has more than 10 bytes');
    }
  });

  test('with all bits set are decoded', () => {
    const all = [...new Array<number>(9).fill(255), 1];
    const expected: Record<string, Value> = {
      fInt32: -1,
      fUint32: 2 ** 32 - 1,
      fSint32: -(2 ** 31),
      fInt64: -1n,
      fUint64: 2n ** 64n - 1n,
      fSint64: -(2n ** 63n),
      fBool: true,
    };
    expect(decode(kind, run(kind, [...all, ...all]))).toEqual([expected[kind.key], expected[kind.key]]);
  });
});

test('a boolean is true when only its high 32 bits are set', () => {
  const kind = kinds.find(({ key }) => key === 'fBool')!;
  const list = [...varint(2n ** 32n), ...varint(2n ** 63n), 0, 1, 0x80, 0, 2];
  expect(decode(kind, run(kind, list))).toEqual([true, true, false, true, false, true]);
});
