/** Tests applied field masks, by the rules of field_mask.proto and of protobuf's FieldMaskUtil. */
import { CodecError, checkFieldMask, mergeByMask, pruneByMask } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import type { AnyMessage, AnyType } from './corpus.ts';
import { Maps, Oneofs, Optionals, Packed, Scalars, Tree } from './gen/everything.rdma.ts';

const any = (type: unknown) => type as AnyType;
const bytes = (...values: number[]) => new Uint8Array(values);

const tree = () => ({
  label: 'root',
  payload: bytes(1, 2),
  children: [{ label: 'a' }, { label: 'b', children: [{ label: 'c' }] }],
  next: { label: 'next', payload: bytes(3), next: { label: 'far' } },
  named: { x: { label: 'x' } },
});

describe('pruneByMask', () => {
  test.each([
    ['a scalar field', ['label'], { label: 'root' }],
    ['several fields', ['label', 'payload'], { label: 'root', payload: bytes(1, 2) }],
    ['a nested message as a whole', ['next'], { next: tree().next }],
    ['a field of a message', ['next.label'], { next: { label: 'next' } }],
    ['a field of a nested message', ['next.next.label'], { next: { next: { label: 'far' } } }],
    ['a whole list', ['children'], { children: tree().children }],
    ['a whole map', ['named'], { named: tree().named }],
    ['a part and the whole, in any order', ['next.label', 'next', 'next.payload'], { next: tree().next }],
    ['the messages on the way to an absent field', ['next.next.next.label'], { next: { next: {} } }],
    ['nothing for an empty mask', [], {}],
  ])('keeps %s', (_what, paths, expected) => {
    const given = tree();
    expect(pruneByMask(Tree, given, { paths })).toEqual(Tree.decode(Tree.encode(expected)));
    expect(given).toEqual(tree());
  });

  test('keeps everything without a mask, and shares nothing', () => {
    const given = Tree.decode(Tree.encode(tree()));
    const copy = pruneByMask(Tree, given, undefined);
    expect(copy).toEqual(given);
    copy.payload[0] = 9;
    copy.children[0]!.label = 'changed';
    expect(given).toEqual(Tree.decode(Tree.encode(tree())));
    expect(pruneByMask(Tree, given, { paths: ['payload'] }).payload).not.toBe(given.payload);
  });

  test('drops unknown fields', () => {
    expect(
      pruneByMask(Tree, { label: 'x', $unknownFields: bytes(8, 1) } as never, { paths: ['label'] }),
    ).toEqual(Tree.create({ label: 'x' }));
  });

  test('keeps a field of a oneof only while it is set', () => {
    const given = { choice: { case: 'text', value: 'a' } } as const;
    expect(pruneByMask(Oneofs, given, { paths: ['text'] }).choice).toEqual(given.choice);
    expect(pruneByMask(Oneofs, given, { paths: ['number'] }).choice).toEqual({ case: undefined });
    const inside = { choice: { case: 'message', value: { fInt32: 1, fString: 's' } } } as const;
    expect(pruneByMask(Oneofs, inside, { paths: ['message.f_int32'] }).choice).toEqual({
      case: 'message',
      value: Scalars.create({ fInt32: 1 }),
    });
  });
});

describe('mergeByMask', () => {
  const rows: [string, AnyType, AnyMessage, AnyMessage, string[], AnyMessage][] = [
    [
      'a scalar replaces the old value',
      any(Scalars),
      { fInt32: 1, fBool: true },
      { fInt32: 2 },
      ['f_int32'],
      { fInt32: 2, fBool: true },
    ],
    [
      'a scalar with its default replaces the old value, too',
      any(Scalars),
      { fInt32: 1 },
      { fInt32: 0 },
      ['f_int32'],
      {},
    ],
    [
      'an absent scalar clears the field',
      any(Scalars),
      { fInt32: 1, fString: 'x' },
      {},
      ['f_int32'],
      { fString: 'x' },
    ],
    ['an absent optional field clears the field, too', any(Optionals), { fInt32: 1 }, {}, ['f_int32'], {}],
    [
      'an optional field with its default stays set',
      any(Optionals),
      { fInt32: 1 },
      { fInt32: 0 },
      ['f_int32'],
      { fInt32: 0 },
    ],
    [
      'a field that the mask does not name stays',
      any(Scalars),
      { fInt32: 1 },
      { fInt32: 2, fString: 'y' },
      ['f_string'],
      { fInt32: 1, fString: 'y' },
    ],
    ['a list is appended', any(Packed), { fInt32: [1] }, { fInt32: [2] }, ['f_int32'], { fInt32: [1, 2] }],
    [
      'a map is merged',
      any(Maps),
      { textByString: { a: '1', b: '1' } },
      { textByString: { b: '2' } },
      ['text_by_string'],
      { textByString: { a: '1', b: '2' } },
    ],
    [
      'a message is merged',
      any(Tree),
      { next: { label: 'x', payload: bytes(1) } },
      { next: { label: 'y' } },
      ['next'],
      { next: { label: 'y', payload: bytes(1) } },
    ],
    [
      'an absent message changes nothing',
      any(Tree),
      { next: { label: 'x' } },
      {},
      ['next'],
      { next: { label: 'x' } },
    ],
    [
      'a field of a nested message is replaced',
      any(Tree),
      { next: { label: 'x', payload: bytes(1) } },
      { next: { label: 'y', payload: bytes(2) } },
      ['next.label'],
      { next: { label: 'y', payload: bytes(1) } },
    ],
    [
      'a field of an absent message creates the message',
      any(Tree),
      {},
      { next: { label: 'y', payload: bytes(2) } },
      ['next.label'],
      { next: { label: 'y' } },
    ],
    [
      'a field of a nested message is cleared',
      any(Tree),
      { next: { label: 'x', payload: bytes(1) } },
      {},
      ['next.label'],
      { next: { payload: bytes(1) } },
    ],
    ['a message that is absent on both sides stays absent', any(Tree), {}, {}, ['next.label'], {}],
    [
      'a case of a oneof replaces another',
      any(Oneofs),
      { choice: { case: 'number', value: 1 } },
      { choice: { case: 'text', value: 'a' } },
      ['text'],
      { choice: { case: 'text', value: 'a' } },
    ],
    [
      'the named case of a oneof is cleared when the source does not have it',
      any(Oneofs),
      { choice: { case: 'text', value: 'a' } },
      {},
      ['text'],
      {},
    ],
    [
      'another case than the named one stays',
      any(Oneofs),
      { choice: { case: 'number', value: 1 } },
      {},
      ['text'],
      { choice: { case: 'number', value: 1 } },
    ],
  ];
  test.each(rows)('%s', (_what, type, target, source, paths, expected) => {
    const into = type.create(target as never);
    const before = structuredClone(source);
    expect(mergeByMask(type, into, source, { paths })).toBe(into);
    expect(into).toEqual(type.create(expected as never));
    expect(source).toEqual(before);
  });

  test('replaces messages, lists and maps on request', () => {
    const target = () => Tree.create({ next: { label: 'x', payload: bytes(1) }, children: [{ label: 'a' }] });
    const options = { replaceMessages: true, replaceLists: true };
    const mask = { paths: ['next', 'children', 'named'] };
    const source = { next: { label: 'y' }, children: [{ label: 'b' }] };
    expect(mergeByMask(Tree, target(), source, mask, options)).toEqual(Tree.create(source));
    expect(mergeByMask(Tree, target(), {}, mask, options)).toEqual(Tree.create());
  });

  test('merges all fields that the source has set when there is no mask', () => {
    const target = Scalars.create({ fInt32: 1, fString: 'x' });
    expect(mergeByMask(Scalars, target, { fString: 'y' }, undefined)).toEqual(
      Scalars.create({ fInt32: 1, fString: 'y' }),
    );
  });

  test('shares nothing with the source', () => {
    const source = Tree.create({ payload: bytes(1), children: [{ label: 'a' }] });
    const target = mergeByMask(Tree, Tree.create(), source, { paths: ['payload', 'children'] });
    target.payload[0] = 9;
    target.children[0]!.label = 'b';
    expect(source).toEqual(Tree.create({ payload: bytes(1), children: [{ label: 'a' }] }));
  });
});

describe('a path that the message does not have is an error, and nothing is changed', () => {
  const deep = Array.from({ length: 200 }, () => 'next').join('.');
  test.each([
    ['an unknown field', 'lable', /mask has "lable", but \S+Tree has no field "lable"/],
    [
      'an unknown field of a nested message',
      'next.lable',
      /mask has "next\.lable", but \S+Tree has no field "lable"/,
    ],
    ['the TypeScript form of a name', 'next.Label', /no field "Label"/],
    ['through a scalar', 'label.x', /Tree\.label is no message/],
    ['through a list', 'children.label', /Tree\.children is repeated/],
    ['through a map', 'named.x', /Tree\.named is a map/],
    ['an empty path', '', /no field ""/],
    ['an empty name after a field', 'next.', /no field ""/],
    ['a name that every object has', '__proto__', /no field "__proto__"/],
    ['a path that is too deep', deep, /at most 100 deep/],
  ])('%s', (_what, path, message) => {
    const target = Tree.create({ label: 'x' });
    const mask = { paths: ['label', 'next', path] };
    expect(() => checkFieldMask(Tree, mask)).toThrow(CodecError);
    expect(() => checkFieldMask(Tree, mask)).toThrow(message);
    expect(() => pruneByMask(Tree, target, mask)).toThrow(message);
    expect(() => mergeByMask(Tree, target, {}, mask)).toThrow(message);
    expect(target).toEqual(Tree.create({ label: 'x' }));
  });

  test('valid paths cause no error', () => {
    checkFieldMask(Tree, { paths: ['label', 'next.next.named', 'children'] });
    checkFieldMask(Tree, {});
  });
});
