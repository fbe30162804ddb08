/**
 * Percentiles of a histogram of the counters page, also of what came between two readings of it. Used by
 * `rdma-rpc top`, and for own tools.
 */

/**
 * What has been added to buckets since they were `before`. A process that has begun anew counts from zero.
 */
export function bucketsSince(now: readonly number[], before: readonly number[] | undefined): number[] {
  return now.map((count, bucket) => Math.max(0, count - (before?.[bucket] ?? 0)));
}

/**
 * Nanoseconds, `share` from 0 to 1; undefined: nothing is in the buckets. Within a bucket values are taken as
 * spread evenly.
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
