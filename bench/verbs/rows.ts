/**
 * The figures of one peer in one scenario, one figure for each round. They are written on the machine that
 * has the devices, and the report reads them.
 */

export interface Row {
  scenario: string;
  peer: string;
  unit: 'us' | 'MiB/s';
  /**
   * Whether this is another figure of the run that produced the scenario's first row. A ratio of the two
   * figures would be meaningless.
   */
  sameRun: boolean;
  /** Null when the row did not run. */
  rounds: (number | null)[];
  /** The reason why a round did not run; '' when all rounds ran. */
  why: string;
}

function middleOf(figures: readonly number[]): number | undefined {
  const sorted = [...figures].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length === 0) return undefined;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Returns the figures of the rounds that ran. */
export function figuresOf(row: Row): number[] {
  return row.rounds.filter((each) => each !== null);
}

/** Returns undefined when no round ran. */
export function median(row: Row): number | undefined {
  return middleOf(figuresOf(row));
}

/**
 * Returns the median of the rounds' own ratios, because a temporary slowdown of the machine affects both
 * peers of a round.
 */
export function ratio(ours: Row | undefined, theirs: Row | undefined): number | undefined {
  const both = ours?.rounds.flatMap((figure, round) => {
    const other = theirs?.rounds[round] ?? null;
    return figure === null || other === null ? [] : [figure / other];
  });
  return middleOf(both ?? []);
}
