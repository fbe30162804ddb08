/**
 * Converts the well-known types between protobuf and JavaScript.
 */
import {
  Any,
  BoolValue,
  CodecError,
  createRegistry,
  Duration,
  durationFromMs,
  durationFromNanos,
  durationToMs,
  durationToNanos,
  fieldMaskFor,
  isAny,
  type JsonObject,
  packAny,
  StringValue,
  Struct,
  structFromJson,
  structToJson,
  Timestamp,
  timestampFromDate,
  timestampFromMs,
  timestampFromNanos,
  timestampNow,
  timestampToDate,
  timestampToMs,
  timestampToNanos,
  unpackAny,
  valueFromJson,
  valueToJson,
} from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import * as everything from './gen/everything.rdma.ts';

describe('Timestamp and Date', () => {
  test.each([
    ['1970-01-01T00:00:00.000Z', 0n, 0],
    ['2026-11-20T12:34:56.789Z', 1_795_178_096n, 789_000_000],
    ['1969-12-31T23:59:59.999Z', -1n, 999_000_000],
    ['0001-01-01T00:00:00.000Z', -62_135_596_800n, 0],
    ['9999-12-31T23:59:59.999Z', 253_402_300_799n, 999_000_000],
  ])('%s is converted in both directions', (text, seconds, nanos) => {
    const timestamp = timestampFromDate(new Date(text));
    expect(timestamp).toEqual({ seconds, nanos });
    expect(timestampToDate(timestamp).toISOString()).toBe(text);
    expect(Timestamp.decode(Timestamp.encode(timestamp))).toEqual(timestamp);
  });

  test("digits beyond a Date's precision are dropped", () => {
    expect(timestampToDate({ seconds: 1n, nanos: 999_999_999 }).getTime()).toBe(1999);
    expect(timestampToDate({ seconds: -1n, nanos: 999_999_999 }).getTime()).toBe(-1);
  });

  test('an invalid Date is refused', () => {
    expect(() => timestampFromDate(new Date(Number.NaN))).toThrow(RangeError);
  });
});

describe('Duration and milliseconds', () => {
  test.each([
    [0, 0n, 0],
    [1500, 1n, 500_000_000],
    [0.001, 0n, 1000],
    [-1500, -1n, -500_000_000],
    [-0.5, 0n, -500_000],
    [-2000, -2n, 0],
    [999.9999999, 1n, 0],
  ])('%d ms', (ms, seconds, nanos) => {
    const duration = durationFromMs(ms);
    expect(duration).toEqual({ seconds, nanos });
    expect(durationToMs(duration)).toBeCloseTo(ms, 5);
    expect(Duration.decode(Duration.encode(duration))).toEqual(duration);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY])('%d is refused', (ms) => {
    expect(() => durationFromMs(ms)).toThrow(RangeError);
  });
});

describe('Any', () => {
  const any = packAny(StringValue, { value: 'x' });

  test('holds a message and the name of its type', () => {
    expect(any.typeUrl).toBe('type.googleapis.com/google.protobuf.StringValue');
    expect(unpackAny(StringValue, Any.decode(Any.encode(any)))).toEqual({ value: 'x' });
  });

  test('returns undefined for another type', () => {
    expect(unpackAny(Struct, any)).toBeUndefined();
    expect(unpackAny(StringValue, Any.create())).toBeUndefined();
  });

  test('refuses a malformed value', () => {
    expect(() => unpackAny(StringValue, { ...any, value: new Uint8Array([10, 5]) })).toThrow(CodecError);
  });
});

describe('nanoseconds are exact', () => {
  test.each([
    [0n, 0n, 0],
    [1n, 0n, 1],
    [-1n, -1n, 999_999_999],
    [-1_000_000_000n, -1n, 0],
    [1_795_178_096_789_012_345n, 1_795_178_096n, 789_012_345],
  ])('for %d as a Timestamp', (nanos, seconds, rest) => {
    expect(timestampFromNanos(nanos)).toEqual({ seconds, nanos: rest });
    expect(timestampToNanos({ seconds, nanos: rest })).toBe(nanos);
  });

  test.each([
    [0n, 0n, 0],
    [-1n, 0n, -1],
    [-1_500_000_000n, -1n, -500_000_000],
    [2_000_000_001n, 2n, 1],
  ])('for %d as a Duration', (nanos, seconds, rest) => {
    expect(durationFromNanos(nanos)).toEqual({ seconds, nanos: rest });
    expect(durationToNanos({ seconds, nanos: rest })).toBe(nanos);
  });

  test('for milliseconds and the current time', () => {
    expect(timestampToMs(timestampFromMs(1500))).toBe(1500);
    const before = Date.now();
    const now = timestampToMs(timestampNow());
    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThanOrEqual(Date.now());
  });
});

describe('FieldMask', () => {
  test('is made of paths that the message has', () => {
    expect(fieldMaskFor(everything.Tree, 'label', 'leaf.kind', 'next.next.children', 'named')).toEqual({
      paths: ['label', 'leaf.kind', 'next.next.children', 'named'],
    });
  });

  test.each(['', 'no', 'leaf.no', 'children.label', 'named.x', 'label.x', 'Label'])('refuses %j', (path) => {
    expect(() => fieldMaskFor(everything.Tree, path)).toThrow(`unknown field ${JSON.stringify(path)}`);
  });
});

describe('Struct and JSON', () => {
  const json = { a: null, b: true, c: 1.5, d: 'x', e: [1, [], {}], f: { g: { h: 'deep' } } };

  test('are equal after encoding and decoding', () => {
    const struct = Struct.decode(Struct.encode(structFromJson(json)));
    expect(structToJson(struct)).toEqual(json);
    for (const value of Object.values(json)) expect(valueToJson(valueFromJson(value))).toEqual(value);
  });

  test('a key __proto__ is a key like any other', () => {
    const hostile = JSON.parse('{"__proto__":{"a":1}}') as JsonObject;
    const back = structToJson(structFromJson(hostile));
    expect(Object.keys(back)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(back)).toBeNull();
  });

  test.each([[Number.NaN], [Number.POSITIVE_INFINITY], [undefined], [() => 1], [1n], [Symbol('x')]])(
    '%s is not JSON',
    (value) => {
      expect(() => valueFromJson(value as never)).toThrow(CodecError);
      expect(() => structFromJson({ a: [value as never] })).toThrow(CodecError);
    },
  );

  test('a cycle is an error', () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    expect(() => structFromJson(cycle as never)).toThrow(/nested more than 100 deep/);
  });
});

describe('a registry', () => {
  const registry = createRegistry(StringValue, everything);

  test('finds types by name, also those of whole modules', () => {
    expect(registry.find('google.protobuf.StringValue')).toBe(StringValue);
    expect(registry.find('corpus.everything.Tree.Leaf')).toBe(everything.Tree_Leaf);
    expect(registry.find('no.such.Type')).toBeUndefined();
    expect(registry.find('constructor')).toBeUndefined();
  });

  test('unpacks the types that it knows', () => {
    const any = packAny(everything.Tree, { label: 'x' });
    expect(isAny(everything.Tree, any)).toBe(true);
    expect(isAny(StringValue, any)).toBe(false);
    const { type, message } = registry.unpack(any);
    expect(type).toBe(everything.Tree);
    expect(message).toMatchObject({ label: 'x' });
    expect(() => registry.unpack(packAny(BoolValue, {}))).toThrow(
      'google.protobuf.Any: type "google.protobuf.BoolValue" is not in the registry',
    );
  });

  test('accepts a type twice, but not two types with one name', () => {
    expect(() => createRegistry(StringValue, StringValue)).not.toThrow();
    expect(() => createRegistry(StringValue, { ...StringValue })).toThrow(
      'two different message types are called google.protobuf.StringValue',
    );
  });
});
