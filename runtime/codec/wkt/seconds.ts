/** Seconds and nanoseconds, which Timestamp and Duration are made of, and what JavaScript has for them. Called by timestamp.ts and duration.ts. */

/** Nanoseconds of a second. */
export const second = 1_000_000_000n;

export interface Parts {
  readonly seconds: bigint;
  readonly nanos: number;
}

/** Milliseconds, split so that `nanos` is never negative. */
export function splitMs(ms: number): Parts {
  if (!Number.isFinite(ms)) throw new RangeError(`rdma-rpc: ${ms} is not a time in milliseconds`);
  const seconds = Math.floor(ms / 1000);
  const nanos = Math.round((ms - seconds * 1000) * 1e6);
  // Rounding may fill up the second.
  return nanos === 1e9 ? { seconds: BigInt(seconds + 1), nanos: 0 } : { seconds: BigInt(seconds), nanos };
}

/** Exact. */
export function joinNanos({ seconds, nanos }: Parts): bigint {
  return seconds * second + BigInt(nanos);
}
