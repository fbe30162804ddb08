/**
 * The metrics of the workers of a group, as they cross from their threads. Worker groups collect them, and
 * `rdma-rpc/prometheus` adds them up; neither knows the other.
 */

/** The metrics of one worker. */
export interface ThreadMetrics {
  readonly threadId: number;
  /** As `getMetricsAsJSON()` of prom-client's registry returns them. */
  readonly metrics: readonly object[];
}

/** A worker group, as what adds up its metrics sees it. */
export interface ThreadMetricsSource {
  /** The thread ids of the workers that run now. */
  readonly workers: readonly { readonly threadId: number }[];
  /**
   * Resolves with the metrics of each worker that has a `registry`, see `listenInWorker`. A worker that does
   * not answer within a second is left out.
   */
  metrics(): Promise<readonly ThreadMetrics[]>;
}
