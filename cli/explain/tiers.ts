/**
 * Finds the largest message size of each tier between two fabrics, by making real calls. `rdma-rpc explain`
 * without a size uses this file.
 */
import type { Tier } from './text.ts';

/**
 * All messages of one tier. `bytesMax` is the largest payload of a message in the tier; null for the last
 * tier.
 */
export interface TierRange {
  readonly tier: Tier;
  readonly bytesMax: number | null;
}

/** A size in bytes that is larger than the limit of every tier except the last. */
const searchedMax = 1 << 20;
/** The tiers, from the shortest messages to the longest. */
const order: readonly Tier[] = ['inline', 'eager', 'segmented', 'bulk'];

/**
 * Returns the ranges of sizes that have the same tier. `tierAt` returns the tier of a message of `bytes`
 * bytes, unaffected by earlier messages.
 */
export async function tierRanges(tierAt: (bytes: number) => Promise<Tier>): Promise<TierRange[]> {
  const known = new Map<number, number>();
  const rankAt = async (bytes: number): Promise<number> => {
    const rank = known.get(bytes) ?? order.indexOf(await tierAt(bytes));
    known.set(bytes, rank);
    return rank;
  };
  /** Returns the largest size that has this rank; the size `from` must have it, too. */
  const largest = async (rank: number, from: number): Promise<number> => {
    const above = [...known].filter(([, each]) => each > rank).map(([bytes]) => bytes);
    let [low, high] = [from, Math.min(...above)];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if ((await rankAt(middle)) <= rank) low = middle;
      else high = middle;
    }
    return low;
  };
  const last = await rankAt(searchedMax);
  const found: TierRange[] = [];
  for (let bytes = 0; ; ) {
    const rank = await rankAt(bytes);
    const tier = order[rank]!;
    if (rank >= last) return [...found, { tier, bytesMax: null }];
    const bytesMax = await largest(rank, bytes);
    found.push({ tier, bytesMax });
    bytes = bytesMax + 1;
  }
}

const shown = (bytes: number): string => `${bytes.toLocaleString('en')} bytes`;

export function rangesText(which: 'request' | 'response', ranges: readonly TierRange[]): string {
  const lines = ranges.map(
    ({ tier, bytesMax }) =>
      `    ${tier.padEnd(9)}  ${bytesMax === null ? 'more' : `up to ${shown(bytesMax)}`}`,
  );
  return [`  ${which}s`, ...lines].join('\n');
}
