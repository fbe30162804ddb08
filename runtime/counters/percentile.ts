/**
 * Computes percentiles of a histogram in the counters page, also of the difference between two readings.
 * `rdma-rpc top` uses it, and applications can build tools with it.
 */

/** Returns the increase of the buckets since `before`. A restarted process counts from zero again. */
export function bucketsSince(now: readonly number[], before: readonly number[] | undefined): number[] {
  return now.map((count, bucket) => Math.max(0, count - (before?.[bucket] ?? 0)));
}

/**
 * Returns the percentile in nanoseconds, or undefined when the buckets are empty. `share` is between 0 and 1.
 * Values are assumed to be evenly distributed within a bucket.
 */
export function percentile(
  buckets: readonly number[],
  bucketNs: readonly number[],
  share: number,
): number | undefined {
  const total = buckets.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const wanted = share * total;
  let below = 0;
  for (const [bucket, count] of buckets.entries()) {
    if (count !== 0 && below + count >= wanted) {
      const from = bucket === 0 ? 0 : bucketNs[bucket - 1]!;
      return from + (bucketNs[bucket]! - from) * Math.max(0, (wanted - below) / count);
    }
    below += count;
  }
  return bucketNs[bucketNs.length - 1];
}
