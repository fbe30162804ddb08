/**
 * Converts durations to and from milliseconds and nanoseconds. Applications use it; the codec itself never
 * converts. All functions throw RangeError for values outside a Duration's range.
 */
import type { Duration } from '../google/protobuf/duration.rdma.ts';
import { checkedDuration, joinNanos, second, splitMs } from './seconds.ts';

/** Throws RangeError for NaN, infinities and more than 10,000 years. */
export function durationFromMs(ms: number): Duration {
  const { seconds, nanos } = splitMs(Math.abs(ms));
  // Both parts have the sign of the duration. `0 -` instead of a minus sign avoids -0.
  return checkedDuration(ms < 0 ? { seconds: -seconds, nanos: 0 - nanos } : { seconds, nanos });
}

/** Returns milliseconds with a fraction. */
export function durationToMs(duration: Duration): number {
  const { seconds, nanos } = checkedDuration(duration);
  return Number(seconds) * 1000 + nanos / 1e6;
}

/** Converts nanoseconds exactly. */
export function durationFromNanos(nanos: bigint): Duration {
  return checkedDuration({ seconds: nanos / second, nanos: Number(nanos % second) });
}

/** Returns nanoseconds, exactly. */
export function durationToNanos(duration: Duration): bigint {
  return joinNanos(checkedDuration(duration));
}
