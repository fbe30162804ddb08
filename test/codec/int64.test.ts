/**
 * Tests the generator's option `int64`: the same messages with bigints, strings and numbers give the same
 * bytes and the same JSON.
 */

import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { clone, createRegistry, equals } from 'rdma-rpc/codec';
import { fromJson, type JsonValue, toJson } from 'rdma-rpc/json';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { GenerateError } from '../../codegen/diagnostic.ts';
import { generate } from '../../codegen/index.ts';
import { proto3, workspace } from '../codegen/workspace.ts';
import { runs } from '../extent.ts';
import type { AnyMessage, AnyType } from './corpus.ts';
import * as asBigint from './gen/bigint/wide.rdma.ts';
import * as asNumber from './gen/number/wide.rdma.ts';
import * as asString from './gen/string/wide.rdma.ts';
import { registryOf } from './protobuf-es.ts';

const seed = 20_261_122;
type Convert = (value: bigint) => unknown;
const modes: [string, AnyType, Convert, object][] = [
  ['bigint', asBigint.Wide as unknown as AnyType, (value) => value, asBigint],
  ['string', asString.Wide as unknown as AnyType, String, asString],
  ['number', asNumber.Wide as unknown as AnyType, Number, asNumber],
];

interface Values {
  readonly signed: bigint;
  readonly unsigned: bigint;
  readonly list: readonly bigint[];
}

/**
 * Returns a message with each kind of field. Fields with a `jstype` of their own, and the types of the
 * runtime, are the same in all modes.
 */
const messageOf = ({ signed, unsigned, list }: Values, convert: Convert): AnyMessage => ({
  signed: convert(signed),
  unsigned: convert(unsigned),
  zigzag: convert(signed),
  fixed: convert(unsigned),
  sfixed: convert(signed),
  maybe: convert(signed),
  standard: convert(signed),
  needed: convert(signed),
  packed: list.map(convert),
  expanded: list.map((value) => convert(value < 0n ? -value : value)),
  totals: Object.fromEntries(list.map((value, i) => [`k${i}`, convert(value)])),
  byNumber: { [String(signed)]: convert(unsigned) },
  choice: { case: 'one', value: convert(unsigned) },
  wrapped: { value: signed },
  at: { seconds: 5n, nanos: 0 },
  text: String(signed),
  plain: 7,
  normal: convert(signed),
  inner: { needed: convert(unsigned) },
});

const safe = BigInt(Number.MAX_SAFE_INTEGER);
const values = fc.record({
  signed: fc.oneof(fc.bigInt(-safe, safe), fc.bigInt(-200n, 200n)),
  unsigned: fc.oneof(fc.bigInt(0n, safe), fc.bigInt(0n, 200n)),
  list: fc.array(fc.bigInt(-safe, safe), { maxLength: 4 }),
});

test('bytes and JSON are the same in all modes, and are decoded unchanged', () => {
  fc.assert(
    fc.property(values, (given) => {
      const expected = asBigint.Wide.encode(messageOf(given, (value) => value) as never);
      const json = toJson(asBigint.Wide, asBigint.Wide.decode(expected));
      for (const [mode, type, convert] of modes) {
        const message = messageOf(given, convert);
        expect(type.encode(message), mode).toEqual(expected);
        expect(type.decode(expected), mode).toMatchObject(message);
        expect(toJson(type, message), mode).toEqual(json);
        expect(fromJson(type, json as JsonValue), mode).toMatchObject(message);
        expect(equals(type, clone(type, message as never), message), mode).toBe(true);
      }
    }),
    { seed, numRuns: runs(200) },
  );
});

test('the bytes equal those of protobuf-es and protobufjs, whose values this codec has not created', () => {
  const es = registryOf([asBigint]).getMessage('t.wide.Wide')!;
  const { root } = protobuf.parse(
    `syntax = "proto2"; package t; message Wide { optional int64 signed = 1; optional uint64 unsigned = 2; optional sint64 zigzag = 3;
      optional fixed64 fixed = 4; optional sfixed64 sfixed = 5; repeated int64 packed = 9 [packed = true]; }`,
    { keepCase: true },
  );
  const theirs = root.lookupType('t.Wide');
  const wide = fc.record({
    signed: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
    unsigned: fc.bigInt(0n, 2n ** 64n - 1n),
    list: fc.array(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), { minLength: 1, maxLength: 4 }),
  });
  // The types of protobufjs do not declare the library's static functions.
  const { Long } = protobuf.util as unknown as {
    readonly Long: { fromString(text: string, unsigned: boolean): object };
  };
  const long = (value: bigint) => Long.fromString(String(value), false);
  const longs = fc.oneof(
    wide,
    values.filter(({ list }) => list.length > 0),
  );
  const property = fc.property(longs, ({ signed, unsigned, list }) => {
    // One codec omits zero, and the other writes it.
    fc.pre(signed !== 0n && unsigned !== 0n);
    const given = { signed, unsigned, zigzag: signed, fixed: unsigned, sfixed: signed, packed: list };
    const bytes = Buffer.from(asBigint.Wide.encode({ ...given, needed: 1n }));
    expect(Buffer.from(toBinary(es, create(es, { ...given, needed: 1n } as never)))).toEqual(bytes);
    expect(asBigint.Wide.decode(bytes)).toMatchObject(given);
    const rest = theirs
      .encode({
        signed: long(signed),
        unsigned: Long.fromString(String(unsigned), true),
        zigzag: long(signed),
        fixed: Long.fromString(String(unsigned), true),
        sfixed: long(signed),
        packed: list.map(long),
      })
      .finish();
    // The messages of these types have no field 8.
    const needed = bytes.indexOf(Buffer.of(8 << 3, 1, (9 << 3) | 2));
    expect(Buffer.concat([bytes.subarray(0, needed), bytes.subarray(needed + 2)])).toEqual(Buffer.from(rest));
  });
  fc.assert(property, { seed, numRuns: runs(200) });
});

describe.each(modes)('as %s', (_mode, type, convert, module) => {
  test('zero is the default, and explicit defaults have that type', () => {
    const zero = convert(0n);
    const created = type.create({ needed: zero } as never) as AnyMessage;
    expect(created).toMatchObject({ signed: zero, unsigned: zero, fixed: zero });
    expect(type.encode({ signed: zero, unsigned: zero, needed: zero })).toHaveLength(2);
    expect((module as typeof asBigint).WideDefaults).toMatchObject({ standard: convert(-42n) });
  });

  test('extensions have that type, too, also in JSON', () => {
    const { extra, extras } = module as unknown as typeof asBigint;
    const message = type.create({ needed: convert(1n) } as never);
    extra.set(message as never, convert(-5n) as never);
    extras.set(message as never, [convert(1n), convert(300n)] as never);
    expect(extra.get(type.decode(type.encode(message)) as never)).toBe(convert(-5n));
    expect(extras.get(message as never)).toEqual([convert(1n), convert(300n)]);
    const registry = createRegistry(module as never);
    const json = toJson(type, message, { registry });
    expect(json).toMatchObject({ '[t.wide.extra]': '-5', '[t.wide.extras]': ['1', '300'] });
    expect(extra.get(fromJson(type, json, { registry }) as never)).toBe(convert(-5n));
  });
});

test('the declared TypeScript types match', () => {
  expectTypeOf<asNumber.Wide['signed']>().toEqualTypeOf<number>();
  expectTypeOf<asString.Wide['packed']>().toEqualTypeOf<string[]>();
  expectTypeOf<asNumber.Wide['totals']>().toEqualTypeOf<Record<string, number>>();
  expectTypeOf<asNumber.Wide['text']>().toEqualTypeOf<string | undefined>();
  expectTypeOf<asBigint.Wide['normal']>().toEqualTypeOf<bigint | undefined>();
  expectTypeOf<asString.Wide['normal']>().toEqualTypeOf<string | undefined>();
});

describe('a value that a number cannot represent', () => {
  const beyond = 2n ** 53n;
  const fields: [string, AnyMessage][] = [
    ['signed', { signed: beyond }],
    ['zigzag', { zigzag: -beyond }],
    ['fixed', { fixed: 2n ** 64n - 1n }],
    ['packed', { packed: [1n, beyond] }],
    ['expanded', { expanded: [beyond] }],
    ['totals', { totals: { a: beyond } }],
    ['by_number', { byNumber: { 1: beyond } }],
    ['one', { choice: { case: 'one', value: beyond } }],
  ];
  test.each(fields)('is an error when field %s is decoded, which names the field', (name, message) => {
    const bytes = asBigint.Wide.encode({ needed: 0n, ...message } as never);
    expect(() => asNumber.Wide.decode(bytes)).toThrow(
      // The error contains the name of the field once, with the name of its message.
      new RegExp(
        `^t\\.wide\\.Wide\\.${name}: -?\\d+ does not fit a number: .*bigint or string .*\\(at byte \\d+\\)$`,
      ),
    );
  });

  test.each([2 ** 53, 0.5, Number.NaN])('is an error when %s is encoded', (signed) => {
    expect(() => asNumber.Wide.encode({ signed, needed: 0 })).toThrow(
      /Wide\.signed: expected a whole number/,
    );
    expect(() => asNumber.Wide.encode({ signed: 1n as never, needed: 0 })).toThrow(/got bigint 1/);
  });

  test('is an error with its position when it is a default in a .proto', async () => {
    const text = 'syntax = "proto2";\nmessage A {\n  optional int64 x = 1 [default = 9007199254740993];\n}';
    const directory = workspace({ 'a.proto': text });
    const error: unknown = await generate({ files: [`${directory}/a.proto`], int64: 'number' }).catch(
      (reason: unknown) => reason,
    );
    expect((error as GenerateError).diagnostics).toMatchObject([
      { line: 3, message: expect.stringContaining('default 9007199254740993 does not fit a number') },
    ]);
  });
});

test('without the option, 64-bit integers are bigint', async () => {
  const directory = workspace({ 'a.proto': proto3('message A { int64 x = 1; map<string, uint64> m = 2; }') });
  const texts = async (int64?: 'bigint') => {
    const options = int64 === undefined ? {} : { int64 };
    return (await generate({ files: [`${directory}/a.proto`], ...options })).outputs.map(({ text }) => text);
  };
  expect(await texts()).toEqual(await texts('bigint'));
  expect((await texts())[0]).toContain('x: bigint;');
});
