/**
 * One line of the results, and the medians over the rounds. The orchestrator and its tables use it.
 */

export interface Row {
  scenario: string;
  peer: string;
  /** The version of the Node of both processes. */
  node: string;
  fabric: string;
  payloadBytes: number;
  inFlight: number;
  /**
   * Size of each transfer beside the calls, in bytes; 0 when there are no transfers. `bytesPerSecond` is then
   * the rate of the transfers.
   */
  besideBytes: number;
  callsPerSecond: number;
  /**
   * Calls/s from the first call of both processes on, for the time `Window.firstMs`; 0 where this was not
   * measured. `callsPerSecond` is then the rate of a later second.
   */
  firstCallsPerSecond: number;
  /** Bytes of payload per second. A payload is counted once, also when it is echoed. */
  bytesPerSecond: number;
  p50Us: number;
  p99Us: number;
  p999Us: number;
  /**
   * CPU time in percent of one CPU, for both processes together with their helper threads. The maximum is 100
   * times the number of CPUs.
   */
  cpuPercent: number;
  /**
   * The memory of both processes some seconds after large calls, as a multiple of their memory before; 0
   * where it was not measured.
   */
  restTimes: number;
  /** The memory of the server's process for each open idle connection; 0 where that was not measured. */
  bytesPerSession: number;
  /**
   * The CPU time that each side takes for one connection, from its handshake to its end; 0 where that was not
   * measured.
   */
  clientCpuUs: number;
  serverCpuUs: number;
  placement: string;
  /**
   * Whether other processes used the machine during the measurement; in medians, whether they did so in every
   * round.
   */
  disturbed: boolean;
}

/** The result of one round of one scenario. */
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
   * CPU time that the rest of the machine used during the round, in percent of one CPU. It decides whether
   * the round can be trusted (the row's `disturbed`).
   */
  othersPercent: number;
};

/** The figures that only some scenarios measure. */
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

/**
 * Returns the middle value, or the mean of the two middle values for an even count. Returns NaN for an empty
 * list.
 */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Returns the undisturbed rounds, or all rounds if every round was disturbed. */
export function calm<T extends { readonly disturbed: boolean }>(rounds: readonly T[]): readonly T[] {
  const undisturbed = rounds.filter(({ disturbed }) => !disturbed);
  return undisturbed.length > 0 ? undisturbed : rounds;
}

/**
 * Returns one row for each scenario, peer and Node, in order of first appearance. Each figure is the median
 * of its undisturbed rounds.
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
