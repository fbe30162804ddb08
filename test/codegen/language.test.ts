/**
 * Tests features of proto2 and the editions that proto3 lacks, in generated code: groups, required fields,
 * defaults, extensions and features. The results are compared with protoc's text format, and with protobufjs
 * if this protoc does not support editions.
 */
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';
import { describe, expect, test } from 'vitest';
import { CodecError } from '../../runtime/codec/index.ts';
import { needs } from '../needs.ts';
import { Features } from './gen/edition.rdma.ts';
import {
  Everything,
  Everything_Level,
  EverythingDefaults,
  Extendable,
  Extendable_inside,
  type Grouped,
  grouped,
  levels,
  message,
  number$ as number,
  texts,
} from './gen/proto2.rdma.ts';

const include = join(dirname(fileURLToPath(import.meta.url)), 'protos');

/** Runs `--decode` or `--encode` of protoc. */
function protoc(flag: string, type: string, input: Uint8Array | string): Buffer {
  return execFileSync('protoc', [`--${flag}=${type}`, `-I${include}`, 'proto2.proto'], { input });
}

const least = { id: 1, name: 'n', must: {} };

describe('required fields', () => {
  test.each(['id', 'name', 'must'] as const)(
    '%s is an error when it is missing in the message or on the wire',
    (field) => {
      const without = { ...least, [field]: undefined } as unknown as typeof least;
      expect(() => Everything.encode(without)).toThrow(
        new CodecError(`lang.proto2.Everything.${field}`, 'is required and was not given'),
      );
      const others = { id: [8, 1], name: [18, 1, 110], must: [186, 1, 0] };
      const bytes = Object.entries(others).flatMap(([name, each]) => (name === field ? [] : each));
      expect(() => Everything.decode(Uint8Array.from(bytes))).toThrow(
        `lang.proto2.Everything: the required field lang.proto2.Everything.${field} is missing (at byte ${bytes.length})`,
      );
    },
  );

  test('are present when they are zero', () => {
    expect([...Everything.encode({ id: 0, name: '', must: {} })]).toEqual([8, 0, 18, 0, 186, 1, 0]);
  });

  test('are also checked inside of a group', () => {
    expect(() => Everything.encode({ ...least, part: { piece: [{} as never] } })).toThrow('Piece.number');
  });
});

describe('defaults', () => {
  test('of fields with presence are constants, and the fields stay absent', () => {
    expect(Everything.decode(Everything.encode(least)).big).toBeUndefined();
    expect(EverythingDefaults).toEqual({
      name: 'it\'s "me"\n',
      big: -9223372036854775808n,
      large: '18446744073709551615',
      raw: Uint8Array.of(0, 255, 97),
      ratio: Number.NEGATIVE_INFINITY,
      single: 1.5,
      yes: true,
      level: Everything_Level.HIGH,
    });
  });

  test('of required fields are filled in by create', () => {
    expect(Everything.create().name).toBe('it\'s "me"\n');
    expect(Features.create({ required: '' }).explicit).toBeUndefined();
  });

  test('are sent when a field is set to its default', () => {
    expect([...Everything.encode({ ...least, yes: true })]).toContain(64);
  });
});

const full = {
  ...least,
  part: { text: 'in', inner: least, piece: [{ number: -1 }, { number: 2 }] },
  item: [{ amount: 1 }, {}, { amount: 300 }],
  choice: { case: 'chosen', value: { really: true } },
  loose: [1, 300],
  tight: [1, 300],
  levels: { a: { x: 1 } },
  other: { text: 'o' },
} as const;

describe('groups', () => {
  test('are decoded as they were encoded', () => {
    const decoded = Everything.decode(Everything.encode(full));
    expect(decoded.part?.piece).toEqual([{ number: -1 }, { number: 2 }]);
    expect(decoded.item.map(({ amount }) => amount)).toEqual([1, undefined, 300]);
    expect(decoded.choice).toEqual({ case: 'chosen', value: { really: true } });
  });

  test('that occur twice are merged', () => {
    const twice = [91, 10, 1, 97, 92, 91, 92];
    const bytes = Uint8Array.from([...Everything.encode(least), ...twice]);
    expect(Everything.decode(bytes).part?.text).toBe('a');
  });

  test.each([
    ['without an end', [91, 10, 1, 97], 'truncated: the group of field 11 has no end'],
    ['closed by another', [91, 100], 'the group of field 11 is closed by field 12'],
    ['cut off', [91, 10, 5], 'truncated'],
    ['an end without a beginning', [92], 'a group of field 11 ends that never began'],
  ])('are refused: %s', (_what, bytes, reason) => {
    expect(() => Everything.decode(Uint8Array.from(bytes))).toThrow(reason);
  });

  test('are refused when they are nested more than 100 deep', () => {
    const deep = [...new Array<number>(200).fill(59), ...new Array<number>(200).fill(60)];
    expect(() => Features.decode(Uint8Array.from(deep))).toThrow(/nested more than 100 deep/);
  });
});

describe('protoc understands', () => {
  needs('protoc');

  test('our encoding, and we understand its encoding', () => {
    const text = protoc('decode', 'lang.proto2.Everything', Everything.encode(full)).toString();
    expect(text.replace(/\s+/g, ' ').trim()).toBe(
      'id: 1 name: "n" Part { text: "in" inner { id: 1 name: "n" must { } } Piece { number: -1 } Piece { number: 2 } } ' +
        'Item { amount: 1 } Item { } Item { amount: 300 } Chosen { really: true } loose: 1 loose: 300 tight: 1 tight: 300 ' +
        'levels { key: "a" value { x: 1 } } other { text: "o" } must { }',
    );
    expect([...protoc('encode', 'lang.proto2.Everything', text)]).toEqual([...Everything.encode(full)]);
  });

  test('our extensions', () => {
    const extended = Extendable.create({ known: 1 });
    number.set(extended, -7n);
    levels.set(extended, [1, 5]);
    grouped.set(extended, { text: 'g' });
    texts.set(extended, ['x', 'y']);
    Extendable_inside.set(extended, 'i');
    const text = protoc('decode', 'lang.proto2.Extendable', Extendable.encode(extended)).toString();
    const back = Extendable.decode(protoc('encode', 'lang.proto2.Extendable', text));
    expect(text).toContain('[lang.proto2.levels]: HIGH');
    expect(number.get(back)).toBe(-7n);
    expect(levels.get(back)).toEqual([1, 5]);
    expect(grouped.get(back)).toEqual({ text: 'g' } satisfies Grouped);
    expect(texts.get(back)).toEqual(['x', 'y']);
    expect(Extendable_inside.get(back)).toBe('i');
  });
});

describe('extensions', () => {
  test('are absent until they are set, and can be replaced and cleared', () => {
    const extended = Extendable.create();
    expect([number.has(extended), number.get(extended), texts.get(extended)]).toEqual([false, undefined, []]);
    number.set(extended, 1n);
    message.set(extended, { x: 5 });
    number.set(extended, 2n);
    expect([number.has(extended), number.get(extended), message.get(extended)]).toEqual([true, 2n, { x: 5 }]);
    number.clear(extended);
    expect([number.has(extended), message.get(extended)]).toEqual([false, { x: 5 }]);
    message.clear(extended);
    expect(extended).toEqual({ known: undefined });
  });

  test('have a description, and check their values', () => {
    expect([number.name, number.extends, number.number]).toEqual([
      'lang.proto2.number',
      'lang.proto2.Extendable',
      101,
    ]);
    expect(() => number.set(Extendable.create(), 'x' as never)).toThrow('lang.proto2.number: expected');
  });

  test('are kept with unknown fields by decoding and encoding', () => {
    const bytes = Uint8Array.from([8, 1, 250, 1, 1, 7, 170, 6, 1, 120]);
    expect([...Extendable.encode(Extendable.decode(bytes))]).toEqual([...bytes]);
  });

  test('with malformed bytes are an error when they are read', () => {
    const extended = Extendable.decode(Uint8Array.from([170, 6, 1, 120]));
    expect(number.get(extended)).toBeUndefined();
    expect(() => message.get(Extendable.decode(Uint8Array.from([186, 6, 2, 8, 128])))).toThrow(CodecError);
  });
});

describe('editions', () => {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => join(include, target);
  const reference = root.loadSync('edition.proto').lookupType('lang.edition.Features');

  test('have features that control presence, packing, groups and UTF-8', () => {
    const value = {
      implicit: 5,
      explicit: 0,
      required: '',
      packed: [1, 2],
      expanded: [1, 2],
      prefixed: { text: 'p', deeper: { text: 'd' } },
      delimited: { deeper: {}, map: { k: { text: 'm' } } },
      groups: [{ text: 'g' }, {}],
      closed: 5,
    };
    const bytes = Features.encode(value);
    expect([...bytes]).toEqual([...reference.encode(reference.create(value)).finish()]);
    expect(Features.decode(bytes)).toMatchObject({ explicit: 0, delimited: { map: { k: { text: 'm' } } } });
    expect(Features.create()).toMatchObject({ implicit: 0, explicit: undefined, required: '' });
  });

  test('allow any bytes in a string without validation', () => {
    const bytes = [26, 0, 74, 2, 0xff, 0x61];
    expect(Features.decode(Uint8Array.from(bytes)).loose).toBe('\ufffda');
    expect(() => Features.decode(Uint8Array.from([26, 1, 0xff]))).toThrow('invalid UTF-8');
  });
});
