/**
 * Tests the text format. The tests check the printed form, that parsing it gives the same message, and that
 * errors give their position. Google's own suite is test/conformance.
 */

import * as wellKnown from 'rdma-rpc/codec';
import { createRegistry, equals, packAny } from 'rdma-rpc/codec';
import { fromText, toText } from 'rdma-rpc/text';
import { describe, expect, test } from 'vitest';
import { Oneofs, Scalars, Tree } from '../gen/everything.rdma.ts';

const registry = createRegistry({ Scalars, Oneofs, Tree }, wellKnown);

test('a message is printed on several lines or on one', () => {
  const message = { fInt32: -5, fString: 'a"\n\u00e9', fBytes: Uint8Array.of(0, 255, 65), fMessage: {} };
  const lines = toText(Scalars, message).split('\n');
  expect(lines).toContain('f_int32: -5');
  expect(lines).toContain('f_string: "a\\"\\n\u00e9"');
  expect(lines).toContain('f_bytes: "\\000\\377A"');
  expect(toText(Oneofs, { choice: { case: 'text', value: 'x' } }, { oneLine: true })).toBe('text: "x"');
});

test.each([
  ['f_double: nan', 'f_double: nan\n'],
  ['f_double: -INF', 'f_double: -inf\n'],
  ['f_float: 0.1', 'f_float: 0.1\n'],
  ['f_float: 16777216.0f', 'f_float: 16777216\n'],
  ['f_int32: 0x10 # a comment\n', 'f_int32: 16\n'],
  ['f_int32: 010,', 'f_int32: 8\n'],
  ['f_int64: -9223372036854775808;', 'f_int64: -9223372036854775808\n'],
  ['f_bool: t', 'f_bool: true\n'],
  ["f_string: 'a' \"b\" '\\x63\\u0064'", 'f_string: "abcd"\n'],
])('%s', (text, printed) => {
  expect(toText(Scalars, fromText(Scalars, text))).toBe(printed);
});

test('every value is parsed as it was printed', () => {
  const message = Scalars.create({
    fDouble: 0.1,
    fFloat: Math.fround(1.1),
    fInt64: -1n << 63n,
    fUint64: (1n << 64n) - 1n,
    fBool: true,
    fString: '\u0000\u001f\u007f"\'\\\u{1f600}',
    fBytes: Uint8Array.from({ length: 256 }, (_, i) => i),
  });
  expect(equals(Scalars, fromText(Scalars, toText(Scalars, message)), message)).toBe(true);
});

test('an Any is printed with its fields where the registry knows its type', () => {
  const any = packAny(Scalars, { fInt32: 7 });
  const text = toText(wellKnown.Any, any, { registry });
  expect(text).toMatch(/^\[type\.googleapis\.com\/.*Scalars\] \{\n {2}f_int32: 7\n\}\n$/);
  expect(fromText(wellKnown.Any, text, { registry })).toEqual(any);
  expect(toText(wellKnown.Any, any)).toContain('type_url: "type.googleapis.com/');
});

describe('the parser refuses, with the position,', () => {
  test.each([
    ['f_int32: 1\nf_int32: 2', /line 2, column 1: f_int32 appears twice/],
    ['missing: 1', /line 1, column 1: .*Scalars has no field missing/],
    ['f_int32: 2147483648', /line 1, column 10: 2147483648 is not from -2147483648 to 2147483647/],
    ['f_int32: 1.5', /expected a whole number, found 1\.5/],
    ['f_int32: 08', /this is not a number/],
    ['f_string: "abc', /line 1, column 11: this string does not end on its line/],
    ['f_string: "\\xff"', /this string is not valid UTF-8/],
    ['f_string: "\\ud800"', /half of a character/],
    ['f_string: "\\q"', /\\q is not an escape/],
    ['f_message {', /but the text ends/],
    ['f_message { } }', /expected the name of a field, found }/],
    ['[x.y]: 1', /extension x\.y is not in the registry/],
    ['f_int32: $', /text format has no "\$" here/],
  ])('%j', (text, wrong) => {
    expect(() => fromText(Scalars, text)).toThrow(wrong);
  });

  test('unlimited nesting is refused in both directions', () => {
    expect(() => fromText(Tree, 'next {'.repeat(100_000))).toThrow(/nested more than 100 deep/);
    const cycle: { next?: object } = {};
    cycle.next = cycle;
    expect(() => toText(Tree, cycle as never)).toThrow(/nested more than 100 deep/);
  });

  test('text of megabytes takes linear time', () => {
    const long = 'x'.repeat(5_000_000);
    expect(fromText(Scalars, `f_string: "${long}"`).fString).toBe(long);
    expect(() => fromText(Scalars, `f_int32: ${'1'.repeat(100_000)}`)).toThrow(/is not from/);
  });
});
