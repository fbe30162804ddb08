/**
 * What one side of a test has measured of a size, or seen of its peer's messages: what it tells the other
 * one.
 */

export interface LatencyUs {
  readonly min: number;
  readonly max: number;
  /** The median, as perftest calls it. */
  readonly typical: number;
  readonly average: number;
  readonly stdev: number;
  readonly p90: number;
  readonly p99: number;
  readonly p99_9: number;
  readonly p99_99: number;
}

/** What a side has measured of a step, or seen of its peer's. */
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
