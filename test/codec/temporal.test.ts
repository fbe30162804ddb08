/**
 * Tests Timestamps and Durations as Temporal objects, with a polyfill on every Node, and with Node's own
 * Temporal if it exists.
 */
import {
  durationFromMs,
  durationFromNanos,
  durationFromTemporal,
  durationToMs,
  durationToNanos,
  durationToTemporal,
  timestampFromDate,
  timestampFromMs,
  timestampFromNanos,
  timestampFromTemporal,
  timestampToDate,
  timestampToNanos,
  timestampToTemporal,
} from 'rdma-rpc/codec';
import { Temporal } from 'temporal-polyfill';
import { afterEach, describe, expect, expectTypeOf, test } from 'vitest';

type Global = { Temporal?: unknown };
const native = (globalThis as Global).Temporal;
const temporals: [string, typeof Temporal][] = [['a polyfill', Temporal]];
if (native !== undefined) temporals.push(['Node', native as typeof Temporal]);
if (native === undefined)
  test(`not run: with Node's own Temporal: Node ${process.version} has none`, () => {});

describe.each(temporals)('Temporal of %s', (_whose, given) => {
  test.each([
    ['1970-01-01T00:00:00Z', 0n, 0],
    ['2026-11-21T10:00:00.123456789Z', 1_795_255_200n, 123_456_789],
    ['1969-12-31T23:59:59.999999999Z', -1n, 999_999_999],
    ['0001-01-01T00:00:00Z', -62_135_596_800n, 0],
    ['9999-12-31T23:59:59.999999999Z', 253_402_300_799n, 999_999_999],
  ])('converts the instant %s in both directions', (text, seconds, nanos) => {
    const timestamp = timestampFromTemporal(given.Instant.from(text));
    expect(timestamp).toEqual({ seconds, nanos });
    const instant = timestampToTemporal(timestamp, given);
    expectTypeOf(instant).toEqualTypeOf<Temporal.Instant>();
    expect(instant.toString()).toBe(text);
  });

  test.each([
    ['PT0S', 0n, 0, 'PT0S'],
    ['PT1.000000001S', 1n, 1, 'PT1.000000001S'],
    ['-PT1.5S', -1n, -500_000_000, '-PT1.5S'],
    ['-PT0.25S', 0n, -250_000_000, '-PT0.25S'],
    ['P1DT2H3M4S', 93_784n, 0, 'PT93784S'],
    ['PT315576000000S', 315_576_000_000n, 0, 'PT315576000000S'],
  ])('converts the duration %s in both directions', (text, seconds, nanos, back) => {
    const duration = durationFromTemporal(given.Duration.from(text));
    expect(duration).toEqual({ seconds, nanos });
    const made = durationToTemporal(duration, given);
    expectTypeOf(made).toEqualTypeOf<Temporal.Duration>();
    expect(made.toString()).toBe(back);
  });

  test.each(['P1Y', 'P2M', 'P3W'])('%s has no fixed length', (text) => {
    expect(() => durationFromTemporal(given.Duration.from(text))).toThrow(/have no length in seconds: round/);
    const relativeTo = '2026-01-01';
    const rounded = given.Duration.from(text).round({ largestUnit: 'hours', relativeTo });
    expect(durationToNanos(durationFromTemporal(rounded))).toBeGreaterThan(0n);
  });

  test('instants outside of the years 1 to 9999 are refused', () => {
    for (const text of ['+010000-01-01T00:00:00Z', '-000001-01-01T00:00:00Z'])
      expect(() => timestampFromTemporal(given.Instant.from(text))).toThrow(/not within the years 1 to 9999/);
  });
});

describe('without a polyfill', () => {
  afterEach(() => {
    if (native === undefined) delete (globalThis as Global).Temporal;
    else (globalThis as Global).Temporal = native;
  });

  test("the runtime's Temporal is used", () => {
    (globalThis as Global).Temporal = Temporal;
    expect(String(timestampToTemporal({ seconds: 0n, nanos: 1 }))).toBe('1970-01-01T00:00:00.000000001Z');
    expect(String(durationToTemporal({ seconds: 1n, nanos: 0 }))).toBe('PT1S');
  });

  test('the error says what to do when there is none', () => {
    delete (globalThis as Global).Temporal;
    const text = /has no Temporal \(Node has one from version 26 on\): give that of a polyfill/;
    expect(() => timestampToTemporal({ seconds: 0n, nanos: 0 })).toThrow(text);
    expect(() => durationToTemporal({ seconds: 0n, nanos: 0 })).toThrow(text);
  });
});

describe('values out of range for a Timestamp or Duration cause a RangeError in both directions', () => {
  const years = 315_576_000_000n;
  test.each([
    ['a date before year 1', () => timestampFromDate(new Date('0000-12-31T23:59:59Z')), /years 1 to 9999/],
    [
      'a date after year 9999',
      () => timestampFromDate(new Date('+010000-01-01T00:00:00Z')),
      /years 1 to 9999/,
    ],
    ['an invalid date', () => timestampFromDate(new Date('x')), /NaN is not a time/],
    ['milliseconds', () => timestampFromMs(1e18), /years 1 to 9999/],
    ['nanoseconds', () => timestampFromNanos(10n ** 30n), /years 1 to 9999/],
    [
      'seconds out of range in a Timestamp',
      () => timestampToDate({ seconds: 1n << 62n, nanos: 0 }),
      /Timestamp\.seconds: 46116/,
    ],
    [
      'nanos out of range in a Timestamp',
      () => timestampToDate({ seconds: 0n, nanos: -1 }),
      /Timestamp\.nanos: -1 is not a whole/,
    ],
    ['too many nanos', () => timestampToNanos({ seconds: 0n, nanos: 1e9 }), /from 0 to 999999999/],
    ['a duration in milliseconds', () => durationFromMs(1e18), /longer than 10,000 years/],
    ['a duration in nanoseconds', () => durationFromNanos(-(10n ** 30n)), /longer than 10,000 years/],
    [
      'seconds out of range in a Duration',
      () => durationToMs({ seconds: -years - 1n, nanos: 0 }),
      /longer than 10,000 years/,
    ],
    ['a Duration with two signs', () => durationToMs({ seconds: 1n, nanos: -1 }), /different signs/],
    [
      'a Duration with two signs, the other way round',
      () => durationToNanos({ seconds: -1n, nanos: 1 }),
      /different signs/,
    ],
  ])('%s', (_what, action, message) => {
    expect(action).toThrow(RangeError);
    expect(action).toThrow(message);
  });
});
