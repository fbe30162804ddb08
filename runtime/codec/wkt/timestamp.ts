/**
 * Converts timestamps to and from dates and nanoseconds. Applications use it; the codec itself never
 * converts. All functions throw RangeError for values outside a Timestamp's range.
 */
import type { Timestamp } from '../google/protobuf/timestamp.rdma.ts';
import { checkedTimestamp, joinNanos, second, splitMs } from './seconds.ts';

/** Throws RangeError for an invalid Date, and for a Date outside the years 1 to 9999. */
export function timestampFromDate(date: Date): Timestamp {
  return timestampFromMs(date.getTime());
}

/** Rounds down to milliseconds, the resolution of a Date. */
export function timestampToDate(timestamp: Timestamp): Date {
  return new Date(timestampToMs(timestamp));
}

/** Returns the current time, in milliseconds from Date.now(). */
export function timestampNow(): Timestamp {
  return timestampFromMs(Date.now());
}

/**
 * Takes milliseconds since 1970, as from Date.now(). Throws RangeError for NaN, infinities and times outside
 * the years 1 to 9999.
 */
export function timestampFromMs(ms: number): Timestamp {
  return checkedTimestamp(splitMs(ms));
}

/** Returns milliseconds since 1970, rounded down. */
export function timestampToMs(timestamp: Timestamp): number {
  const { seconds, nanos } = checkedTimestamp(timestamp);
  return Number(seconds) * 1000 + Math.floor(nanos / 1e6);
}

/** Takes nanoseconds since 1970. The conversion is exact. */
export function timestampFromNanos(nanos: bigint): Timestamp {
  const rest = ((nanos % second) + second) % second;
  return checkedTimestamp({ seconds: (nanos - rest) / second, nanos: Number(rest) });
}

/** Returns nanoseconds since 1970. The conversion is exact. */
export function timestampToNanos(timestamp: Timestamp): bigint {
  return joinNanos(checkedTimestamp(timestamp));
}
