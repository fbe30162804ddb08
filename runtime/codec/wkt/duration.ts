/** Durations as milliseconds and as nanoseconds. For applications; the codec itself never converts. */
import type { Duration } from '../google/protobuf/duration.rdma.ts';
import { joinNanos, second, splitMs } from './seconds.ts';

/** Throws RangeError for NaN and infinities. */
export function durationFromMs(ms: number): Duration {
  const { seconds, nanos } = splitMs(Math.abs(ms));
  // Both parts have the sign of the span. `0 -` instead of a minus: no -0.
  return ms < 0 ? { seconds: -seconds, nanos: 0 - nanos } : { seconds, nanos };
}

/** Milliseconds with a fraction. */
export function durationToMs(duration: Duration): number {
  return Number(duration.seconds) * 1000 + duration.nanos / 1e6;
}

/** Exact. */
export function durationFromNanos(nanos: bigint): Duration {
  return { seconds: nanos / second, nanos: Number(nanos % second) };
}

/** Exact. */
export function durationToNanos(duration: Duration): bigint {
  return joinNanos(duration);
}
