/**
 * What one side of a test has measured for a size, or has observed of its peer's messages. It is sent to the
 * other side.
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

/** What a side has measured in a step, or has observed of its peer. */
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
