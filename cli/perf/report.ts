/**
 * The measurements of one side of a test for one size, and its observations of the peer's messages. It is
 * sent to the other side.
 */

export interface LatencyUs {
  readonly min: number;
  readonly max: number;
  /** The median, under perftest's name for it. */
  readonly typical: number;
  readonly average: number;
  readonly stdev: number;
  readonly p90: number;
  readonly p99: number;
  readonly p99_9: number;
  readonly p99_99: number;
}

/** The measurements of a side in a step, and its observations of the peer. */
export interface Report {
  readonly messages: number;
  readonly received: number;
  readonly elapsedNs: number;
  readonly userNs: number;
  readonly systemNs: number;
  readonly corrupt: number;
  readonly firstCorrupt: string;
  readonly latencyUs: LatencyUs | null;
  readonly peakNs: number;
}
