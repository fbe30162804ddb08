/** One line of the results, and the medians over the rounds. Used by the orchestrator and its tables. */

export interface Row {
  scenario: string;
  peer: string;
  /** Version of the Node of both processes. */
  node: string;
  fabric: string;
  payloadBytes: number;
  inFlight: number;
  /** Of each of the transfers beside the calls; 0: there are none. `bytesPerSecond` is then theirs. */
  besideBytes: number;
  callsPerSecond: number;
  /**
   * Calls/s from the first call of both processes on, for as long as `Window.firstMs` says; 0 where that was
   * not asked. `callsPerSecond` is then that of a later second.
   */
  firstCallsPerSecond: number;
  /** Payload counted once, also when it is echoed. */
  bytesPerSecond: number;
  p50Us: number;
  p99Us: number;
  p999Us: number;
  /** Of one CPU, both processes together with their helper threads: up to 100 times the number of CPUs. */
  cpuPercent: number;
  /** Memory of both processes some seconds after large calls, as a multiple of before; 0 where not asked. */
  restTimes: number;
  /** Of the server's process, for each connection that is open and idle; 0 where that was not asked. */
  bytesPerSession: number;
  /**
   * CPU that each side takes for one connection, from its handshake to its end; 0 where that was not asked.
   */
  clientCpuUs: number;
  serverCpuUs: number;
  placement: string;
  /** Others used the machine meanwhile; of medians: in every round. */
  disturbed: boolean;
}

/** What one round of one scenario gives. */
export type Measurement = Omit<
  Row,
  | 'scenario'
  | 'peer'
  | 'node'
  | 'fabric'
  | 'payloadBytes'
  | 'inFlight'
  | 'besideBytes'
  | 'placement'
  | 'disturbed'
> & {
  /**
   * CPU that the rest of the machine used meanwhile, percent of one. Tells whether the round can be trusted:
   * the row's `disturbed`.
   */
  othersPercent: number;
};

/** The figures that only some scenarios ask for. */
export const notAsked = {
  firstCallsPerSecond: 0,
  restTimes: 0,
  bytesPerSession: 0,
  clientCpuUs: 0,
  serverCpuUs: 0,
} as const;

const measured = [
  'callsPerSecond',
  'firstCallsPerSecond',
  'bytesPerSecond',
  'p50Us',
  'p99Us',
  'p999Us',
  'cpuPercent',
  'restTimes',
  'bytesPerSession',
  'clientCpuUs',
  'serverCpuUs',
] as const;

/** The middle value; the mean of the two middle ones of an even count. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The rounds that nobody disturbed; all of them when there is none. */
export function calm<T extends { readonly disturbed: boolean }>(rounds: readonly T[]): readonly T[] {
  const undisturbed = rounds.filter(({ disturbed }) => !disturbed);
  return undisturbed.length > 0 ? undisturbed : rounds;
}

/**
 * One row for each scenario, peer and Node, in order of first appearance; each figure is the median of its
 * undisturbed rounds.
 */
export function medians(rows: readonly Row[]): Row[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = `${row.scenario} ${row.peer} ${row.node}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return [...groups.values()].map((group) => {
    const counted = calm(group);
    const row = { ...counted[0]! };
    for (const key of measured) row[key] = median(counted.map((each) => each[key]));
    return row;
  });
}
