/** Field masks, applied: the rules of field_mask.proto and of protobuf's FieldMaskUtil. */
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
    ['a scalar', ['label'], { label: 'root' }],
    ['several', ['label', 'payload'], { label: 'root', payload: bytes(1, 2) }],
    ['a whole message', ['next'], { next: tree().next }],
    ['a field of a message', ['next.label'], { next: { label: 'next' } }],
    ['one in it', ['next.next.label'], { next: { next: { label: 'far' } } }],
    ['a list, whole', ['children'], { children: tree().children }],
    ['a map, whole', ['named'], { named: tree().named }],
    ['a part and the whole, in any order', ['next.label', 'next', 'next.payload'], { next: tree().next }],
    ['what is not there', ['next.next.next.label'], { next: { next: {} } }],
    ['nothing', [], {}],
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
      'a scalar replaces',
      any(Scalars),
      { fInt32: 1, fBool: true },
      { fInt32: 2 },
      ['f_int32'],
      { fInt32: 2, fBool: true },
    ],
    ['one at its default too', any(Scalars), { fInt32: 1 }, { fInt32: 0 }, ['f_int32'], {}],
    [
      'one that is not there clears',
      any(Scalars),
      { fInt32: 1, fString: 'x' },
      {},
      ['f_int32'],
      { fString: 'x' },
    ],
    ['one with presence too', any(Optionals), { fInt32: 1 }, {}, ['f_int32'], {}],
    [
      'a default with presence stays one',
      any(Optionals),
      { fInt32: 1 },
      { fInt32: 0 },
      ['f_int32'],
      { fInt32: 0 },
    ],
    [
      'what is not named stays',
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
      'one that is not there does nothing',
      any(Tree),
      { next: { label: 'x' } },
      {},
      ['next'],
      { next: { label: 'x' } },
    ],
    [
      'a field inside',
      any(Tree),
      { next: { label: 'x', payload: bytes(1) } },
      { next: { label: 'y', payload: bytes(2) } },
      ['next.label'],
      { next: { label: 'y', payload: bytes(1) } },
    ],
    [
      'a field inside of none makes one',
      any(Tree),
      {},
      { next: { label: 'y', payload: bytes(2) } },
      ['next.label'],
      { next: { label: 'y' } },
    ],
    [
      'a field inside is cleared',
      any(Tree),
      { next: { label: 'x', payload: bytes(1) } },
      {},
      ['next.label'],
      { next: { payload: bytes(1) } },
    ],
    ['none on both sides stays none', any(Tree), {}, {}, ['next.label'], {}],
    [
      'a case replaces another',
      any(Oneofs),
      { choice: { case: 'number', value: 1 } },
      { choice: { case: 'text', value: 'a' } },
      ['text'],
      { choice: { case: 'text', value: 'a' } },
    ],
    [
      'a case that is not chosen clears itself',
      any(Oneofs),
      { choice: { case: 'text', value: 'a' } },
      {},
      ['text'],
      {},
    ],
    [
      'and leaves another one alone',
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

  test('without a mask: all fields that the source has set', () => {
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
    ['no field', 'lable', /mask has "lable", but \S+Tree has no field "lable"/],
    ['no field inside', 'next.lable', /mask has "next\.lable", but \S+Tree has no field "lable"/],
    ['a name of TypeScript', 'next.Label', /no field "Label"/],
    ['through a scalar', 'label.x', /Tree\.label is no message/],
    ['through a list', 'children.label', /Tree\.children is repeated/],
    ['through a map', 'named.x', /Tree\.named is a map/],
    ['an empty one', '', /no field ""/],
    ['behind one that is there', 'next.', /no field ""/],
    ['a name of every object', '__proto__', /no field "__proto__"/],
    ['too deep', deep, /at most 100 deep/],
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
