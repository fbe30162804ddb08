/**
 * Seconds and nanoseconds, the parts of Timestamp and Duration: their ranges, and their conversions to
 * JavaScript's types. timestamp.ts and duration.ts call these functions.
 */

/** Nanoseconds per second. */
export const second = 1_000_000_000n;

/**
 * Range of a Timestamp's seconds, by google/protobuf/timestamp.proto: 0001-01-01T00:00:00Z to
 * 9999-12-31T23:59:59Z.
 */
export const timestampSecondsMin = -62_135_596_800n;
export const timestampSecondsMax = 253_402_300_799n;
/** Limit of a Duration's seconds in both directions, by google/protobuf/duration.proto: 10,000 years. */
export const durationSecondsMax = 315_576_000_000n;
export const nanosMax = 999_999_999;

export interface Parts {
  readonly seconds: bigint;
  readonly nanos: number;
}

/** Splits milliseconds so that `nanos` is never negative. */
export function splitMs(ms: number): Parts {
  if (!Number.isFinite(ms)) throw new RangeError(`rdma-rpc: ${ms} is not a time in milliseconds`);
  const seconds = Math.floor(ms / 1000);
  const nanos = Math.round((ms - seconds * 1000) * 1e6);
  // Rounding may yield a whole second.
  return nanos === 1e9 ? { seconds: BigInt(seconds + 1), nanos: 0 } : { seconds: BigInt(seconds), nanos };
}

/** Returns nanoseconds, exactly. */
export function joinNanos({ seconds, nanos }: Parts): bigint {
  return seconds * second + BigInt(nanos);
}

function checkNanos(type: string, { nanos }: Parts, least: number): void {
  if (!Number.isInteger(nanos) || nanos < least || nanos > nanosMax)
    throw new RangeError(`${type}.nanos: ${nanos} is not a whole number from ${least} to ${nanosMax}`);
}

/** Returns the timestamp. Throws RangeError when it is outside protobuf's range. */
export function checkedTimestamp<T extends Parts>(timestamp: T): T {
  const { seconds } = timestamp;
  if (seconds < timestampSecondsMin || seconds > timestampSecondsMax)
    throw new RangeError(
      `google.protobuf.Timestamp.seconds: ${seconds} is not within the years 1 to 9999 (${timestampSecondsMin} to ${timestampSecondsMax})`,
    );
  checkNanos('google.protobuf.Timestamp', timestamp, 0);
  return timestamp;
}

/** Returns the duration. Throws RangeError when it is outside protobuf's range. */
export function checkedDuration<T extends Parts>(duration: T): T {
  const { seconds, nanos } = duration;
  if (seconds < -durationSecondsMax || seconds > durationSecondsMax)
    throw new RangeError(
      `google.protobuf.Duration.seconds: ${seconds} is longer than 10,000 years (±${durationSecondsMax})`,
    );
  checkNanos('google.protobuf.Duration', duration, -nanosMax);
  if ((seconds > 0n && nanos < 0) || (seconds < 0n && nanos > 0))
    throw new RangeError(
      `google.protobuf.Duration: seconds (${seconds}) and nanos (${nanos}) have different signs`,
    );
  return duration;
}
