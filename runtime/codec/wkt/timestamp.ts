/**
 * Timestamps as dates and as nanoseconds. For applications; the codec itself never converts. Both ways throw
 * RangeError for what no Timestamp can be.
 */
import type { Timestamp } from '../google/protobuf/timestamp.rdma.ts';
import { checkedTimestamp, joinNanos, second, splitMs } from './seconds.ts';

/** Throws RangeError for an invalid Date, and for one outside of the years 1 to 9999. */
export function timestampFromDate(date: Date): Timestamp {
  return timestampFromMs(date.getTime());
}

/** Rounded down to milliseconds, which is all that a Date has. */
export function timestampToDate(timestamp: Timestamp): Date {
  return new Date(timestampToMs(timestamp));
}

/** Now, with the milliseconds of Date.now(). */
export function timestampNow(): Timestamp {
  return timestampFromMs(Date.now());
}

/**
 * Milliseconds since 1970, as of Date.now(). Throws RangeError for NaN, infinities and what is not within the
 * years 1 to 9999.
 */
export function timestampFromMs(ms: number): Timestamp {
  return checkedTimestamp(splitMs(ms));
}

/** Rounded down to milliseconds since 1970. */
export function timestampToMs(timestamp: Timestamp): number {
  const { seconds, nanos } = checkedTimestamp(timestamp);
  return Number(seconds) * 1000 + Math.floor(nanos / 1e6);
}

/** Nanoseconds since 1970, exactly. */
export function timestampFromNanos(nanos: bigint): Timestamp {
  const rest = ((nanos % second) + second) % second;
  return checkedTimestamp({ seconds: (nanos - rest) / second, nanos: Number(rest) });
}

/** Nanoseconds since 1970, exactly. */
export function timestampToNanos(timestamp: Timestamp): bigint {
  return joinNanos(checkedTimestamp(timestamp));
}
