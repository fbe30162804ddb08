/**
 * Tests how equals, clone and merge compare, copy and merge values. protobuf-es.test.ts has random messages.
 */
import { clone, equals, merge } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import type { AnyMessage, AnyType } from './corpus.ts';
import { JsTypes, Maps, Oneofs, Optionals, Packed, Scalars, Tree } from './gen/everything.rdma.ts';

const any = (type: unknown) => type as AnyType;
const bytes = (...values: number[]) => new Uint8Array(values);

describe('equals', () => {
  test.each([
    [
      'an empty message and one with defaults',
      Scalars,
      {},
      { fInt32: 0, fString: '', fBytes: bytes(), fInt64: 0n, fBool: false },
    ],
    ['bytes of the same content', Scalars, { fBytes: bytes(1, 2) }, { fBytes: Buffer.from([1, 2]) }],
    ['NaN and NaN', Scalars, { fDouble: Number.NaN }, { fDouble: Number.NaN }],
    ['0 and -0', Scalars, { fDouble: 0 }, { fDouble: -0 }],
    [
      'maps in another order',
      Maps,
      { textByString: { a: '1', b: '2' } },
      { textByString: { b: '2', a: '1' } },
    ],
    ['an empty list and an absent one', Packed, {}, { fInt32: [] }],
    ['an empty map and an absent one', Maps, {}, { byInt32: {} }],
    [
      'oneofs with the same case',
      Oneofs,
      { choice: { case: 'text', value: 'a' } },
      { choice: { case: 'text', value: 'a' } },
    ],
    ['an undefined case and an absent oneof', Oneofs, {}, { choice: { case: undefined } }],
    ['defaults of other JavaScript types and absent fields', JsTypes, {}, { asString: '0', asNumber: 0 }],
    [
      'equal nested messages',
      Tree,
      { next: { next: { label: 'x' } } },
      { next: { next: { label: 'x' }, label: '' } },
    ],
  ] as const)('is true for %s', (_what, type, a, b) => {
    expect(equals(any(type), a as AnyMessage, b as AnyMessage)).toBe(true);
    expect(equals(any(type), b as AnyMessage, a as AnyMessage)).toBe(true);
  });

  test.each([
    ['an optional field with its default and an absent one', Optionals, {}, { fInt32: 0 }],
    ['different bytes', Scalars, { fBytes: bytes(1) }, { fBytes: bytes(2) }],
    ['bytes of another length', Scalars, { fBytes: bytes(1) }, { fBytes: bytes(1, 0) }],
    ['a list in another order', Packed, { fInt32: [1, 2] }, { fInt32: [2, 1] }],
    ['a longer list', Packed, { fInt32: [1] }, { fInt32: [1, 2] }],
    [
      'a key that only looks like an inherited one',
      Maps,
      { textByString: { toString: 'a' } },
      { textByString: { a: 'a' } },
    ],
    ['an additional key', Maps, { textByString: { a: '1' } }, { textByString: { a: '1', b: '2' } }],
    [
      'different cases of a oneof',
      Oneofs,
      { choice: { case: 'text', value: 'a' } },
      { choice: { case: undefined } },
    ],
    ['a case with its default and no case', Oneofs, { choice: { case: 'text', value: '' } }, {}],
    ['an empty nested message and an absent one', Tree, {}, { next: {} }],
    ['different unknown fields', Tree, {}, { $unknownFields: bytes(8, 1) }],
  ] as const)('is false for %s', (_what, type, a, b) => {
    expect(equals(any(type), a as AnyMessage, b as AnyMessage)).toBe(false);
    expect(equals(any(type), b as AnyMessage, a as AnyMessage)).toBe(false);
  });
});

describe('clone', () => {
  const original = Tree.create({
    label: 'a',
    payload: bytes(1, 2, 3),
    children: [{ label: 'b' }],
    named: { x: { label: 'c' } },
  });

  test('shares nothing with the original', () => {
    const copy = clone(Tree, original);
    expect(copy).toEqual(original);
    copy.payload[0] = 9;
    copy.children[0]!.label = 'z';
    copy.named.x!.label = 'z';
    copy.children.push(Tree.create());
    expect(original.payload[0]).toBe(1);
    expect(original.children).toHaveLength(1);
    expect(original.children[0]!.label).toBe('b');
    expect(original.named.x!.label).toBe('c');
  });

  test('accepts the same inputs as encode, and keeps unknown fields', () => {
    expect(clone(Tree, { label: 'x' })).toEqual(Tree.create({ label: 'x' }));
    const kept = { label: 'x', $unknownFields: bytes(8, 1) };
    expect(clone(Tree, kept)).toEqual({ ...Tree.create({ label: 'x' }), $unknownFields: bytes(8, 1) });
  });

  test('a cycle is an error, not an overflow', () => {
    const cycle = Tree.create();
    cycle.next = cycle;
    expect(() => clone(Tree, cycle)).toThrow(/nested more than 100 deep/);
  });
});

describe('merge', () => {
  test.each([
    [
      'a set field replaces the old value',
      Scalars,
      { fInt32: 1, fString: 'a' },
      { fInt32: 2 },
      { fInt32: 2, fString: 'a' },
    ],
    [
      'a default of a field without presence replaces nothing',
      Scalars,
      { fInt32: 1 },
      { fInt32: 0 },
      { fInt32: 1 },
    ],
    [
      'a default of an optional field replaces the old value',
      Optionals,
      { fInt32: 1 },
      { fInt32: 0 },
      { fInt32: 0 },
    ],
    ['lists are appended', Packed, { fInt32: [1] }, { fInt32: [2, 3] }, { fInt32: [1, 2, 3] }],
    [
      'maps are merged',
      Maps,
      { textByString: { a: '1', b: '2' } },
      { textByString: { b: '3', c: '4' } },
      { textByString: { a: '1', b: '3', c: '4' } },
    ],
    [
      'messages are merged',
      Tree,
      { next: { label: 'a' } },
      { next: { leaf: { kind: 1 } } },
      { next: { label: 'a', leaf: { kind: 1 } } },
    ],
    [
      'another case of a oneof replaces the old one',
      Oneofs,
      { choice: { case: 'text', value: 'a' } },
      { choice: { case: 'number', value: 1 } },
      { choice: { case: 'number', value: 1 } },
    ],
    [
      'messages in the same case of a oneof are merged',
      Oneofs,
      { choice: { case: 'message', value: { fInt32: 1 } } },
      { choice: { case: 'message', value: { fUint32: 2 } } },
      { choice: { case: 'message', value: { fInt32: 1, fUint32: 2 } } },
    ],
    [
      'unknown fields are appended',
      Tree,
      { $unknownFields: bytes(8, 1) },
      { $unknownFields: bytes(8, 2) },
      { $unknownFields: bytes(8, 1, 8, 2) },
    ],
  ] as const)('%s', (_what, type, target, source, expected) => {
    const given = clone(any(type), target as AnyMessage);
    expect(merge(any(type), given, source as AnyMessage)).toBe(given);
    expect(given).toEqual(clone(any(type), expected as AnyMessage));
  });

  test('with itself doubles its lists and ends', () => {
    const tree = Tree.create({ label: 'a', children: [{ label: 'b' }], next: { children: [{}] } });
    merge(Tree, tree, tree);
    expect(tree.children.map(({ label }) => label)).toEqual(['b', 'b']);
    expect(tree.next!.children).toHaveLength(2);
  });
});
