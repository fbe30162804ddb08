/**
 * Converts Timestamps and Durations to and from `Temporal.Instant` and `Temporal.Duration`. The conversion is
 * exact, because all of them count nanoseconds. Applications use it. Temporal is that of the runtime (Node
 * has it from version 26 on) or a polyfill passed as an argument. Applications that do not call these
 * functions need no Temporal. The types need no `lib` setting of the compiler.
 */
import type { Duration } from '../google/protobuf/duration.rdma.ts';
import type { Timestamp } from '../google/protobuf/timestamp.rdma.ts';
import { durationFromNanos } from './duration.ts';
import { checkedDuration } from './seconds.ts';
import { timestampFromNanos, timestampToNanos } from './timestamp.ts';

/** The part of a `Temporal.Instant` that is used here. */
export interface InstantLike {
  readonly epochNanoseconds: bigint;
}

/** The part of a `Temporal.Duration` that is used here. */
export interface DurationLike {
  readonly years: number;
  readonly months: number;
  readonly weeks: number;
  readonly days: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
  readonly milliseconds: number;
  readonly microseconds: number;
  readonly nanoseconds: number;
}

/** The part of `Temporal` that is used here. */
export interface TemporalLike<I = InstantLike, D = DurationLike> {
  readonly Instant: { fromEpochNanoseconds(nanoseconds: bigint): I };
  readonly Duration: {
    from(parts: { seconds: number; milliseconds: number; microseconds: number; nanoseconds: number }): D;
  };
}

type Global = typeof globalThis;
/** `Temporal.Instant` if the compiler knows it; otherwise InstantLike. */
type GlobalInstant = Global extends {
  Temporal: { Instant: { fromEpochNanoseconds(nanoseconds: bigint): infer I } };
}
  ? I
  : InstantLike;
type GlobalDuration = Global extends { Temporal: { Duration: { prototype: infer D } } } ? D : DurationLike;

function known(given: TemporalLike | undefined, call: string): TemporalLike {
  const temporal = given ?? (globalThis as { Temporal?: TemporalLike }).Temporal;
  if (temporal !== undefined) return temporal;
  throw new TypeError(
    `${call}: this runtime has no Temporal (Node has one from version 26 on): give that of a polyfill as second argument`,
  );
}

/** Throws RangeError for an instant outside the years 1 to 9999. */
export function timestampFromTemporal(instant: InstantLike): Timestamp {
  return timestampFromNanos(instant.epochNanoseconds);
}

/**
 * Uses the given Temporal, or that of the runtime. Throws RangeError for values outside a Timestamp's range,
 * and TypeError when Temporal is missing.
 */
export function timestampToTemporal(timestamp: Timestamp): GlobalInstant;
export function timestampToTemporal<I>(timestamp: Timestamp, temporal: Pick<TemporalLike<I>, 'Instant'>): I;
export function timestampToTemporal(
  timestamp: Timestamp,
  temporal?: Pick<TemporalLike<unknown>, 'Instant'>,
): unknown {
  const { Instant } = known(temporal as TemporalLike | undefined, 'timestampToTemporal');
  return Instant.fromEpochNanoseconds(timestampToNanos(timestamp));
}

/**
 * A day has 24 hours, as in Temporal itself. Throws RangeError for years, months and weeks, whose length
 * depends on the calendar, and for more than 10,000 years.
 */
export function durationFromTemporal(duration: DurationLike): Duration {
  for (const unit of ['years', 'months', 'weeks'] as const) {
    if (duration[unit] !== 0)
      throw new RangeError(
        `durationFromTemporal: ${duration[unit]} ${unit} have no length in seconds: round it first, with { largestUnit: 'hours', relativeTo }`,
      );
  }
  const hours = BigInt(duration.days) * 24n + BigInt(duration.hours);
  const seconds = (hours * 60n + BigInt(duration.minutes)) * 60n + BigInt(duration.seconds);
  const micros = (seconds * 1000n + BigInt(duration.milliseconds)) * 1000n + BigInt(duration.microseconds);
  return durationFromNanos(micros * 1000n + BigInt(duration.nanoseconds));
}

/**
 * The result has seconds and fractions of seconds; `round({ largestUnit: 'hours' })` converts them to hours.
 * Throws RangeError for values outside a Duration's range, and TypeError when Temporal is missing.
 */
export function durationToTemporal(duration: Duration): GlobalDuration;
export function durationToTemporal<D>(
  duration: Duration,
  temporal: Pick<TemporalLike<unknown, D>, 'Duration'>,
): D;
export function durationToTemporal(
  duration: Duration,
  temporal?: Pick<TemporalLike<unknown, unknown>, 'Duration'>,
): unknown {
  const { Duration } = known(temporal as TemporalLike | undefined, 'durationToTemporal');
  const { seconds, nanos } = checkedDuration(duration);
  return Duration.from({
    seconds: Number(seconds),
    milliseconds: Math.trunc(nanos / 1e6),
    microseconds: Math.trunc(nanos / 1e3) % 1e3,
    nanoseconds: nanos % 1e3,
  });
}
