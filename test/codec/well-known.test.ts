/** Timestamp, Duration and Any between protobuf and JavaScript. */
import {
  Any,
  CodecError,
  Duration,
  durationFromMs,
  durationToMs,
  packAny,
  StringValue,
  Struct,
  Timestamp,
  timestampFromDate,
  timestampToDate,
  unpackAny,
} from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';

describe('Timestamp and Date', () => {
  test.each([
    ['1970-01-01T00:00:00.000Z', 0n, 0],
    ['2026-11-20T12:34:56.789Z', 1_795_178_096n, 789_000_000],
    ['1969-12-31T23:59:59.999Z', -1n, 999_000_000],
    ['0001-01-01T00:00:00.000Z', -62_135_596_800n, 0],
    ['9999-12-31T23:59:59.999Z', 253_402_300_799n, 999_000_000],
  ])('%s', (text, seconds, nanos) => {
    const timestamp = timestampFromDate(new Date(text));
    expect(timestamp).toEqual({ seconds, nanos });
    expect(timestampToDate(timestamp).toISOString()).toBe(text);
    expect(Timestamp.decode(Timestamp.encode(timestamp))).toEqual(timestamp);
  });

  test('what a Date cannot hold is cut off', () => {
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

  test('gives nothing for another type', () => {
    expect(unpackAny(Struct, any)).toBeUndefined();
    expect(unpackAny(StringValue, Any.create())).toBeUndefined();
  });

  test('refuses a malformed value', () => {
    expect(() => unpackAny(StringValue, { ...any, value: new Uint8Array([10, 5]) })).toThrow(CodecError);
  });
});
