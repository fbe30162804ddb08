/**
 * The form in which the workers of a group send their metrics to the main thread. Worker groups collect the
 * metrics, and `rdma-rpc/prometheus` adds them up. The two layers do not import each other, so both import
 * these types.
 */

/** The metrics of one worker. */
export interface ThreadMetrics {
  readonly threadId: number;
  /** The metrics in the form that `getMetricsAsJSON()` of prom-client's registry returns. */
  readonly metrics: readonly object[];
}

/** The part of a worker group that `rdma-rpc/prometheus` uses. */
export interface ThreadMetricsSource {
  /** The thread ids of the workers that run now. */
  readonly workers: readonly { readonly threadId: number }[];
  /**
   * Resolves to the metrics of each worker that passed a `registry` to `listenInWorker`. A worker that does
   * not answer within a second is left out.
   */
  metrics(): Promise<readonly ThreadMetrics[]>;
}
