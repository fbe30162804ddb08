/** The figures of one peer in one scenario, one for each round. Written where the devices are, read by the report. */

export interface Row {
  scenario: string;
  peer: string;
  unit: 'us' | 'MiB/s';
  /** Only of rounds that ran. */
  rounds: number[];
  /** Why a round did not run; '' when all did. */
  why: string;
}

/** Undefined when no round ran. */
export function median(row: Row | undefined): number | undefined {
  const sorted = [...(row?.rounds ?? [])].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length === 0) return undefined;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)] : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
