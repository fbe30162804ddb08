/**
 * The totals of a channel, as applications and metrics see them. The connections of a channel count them.
 */

/** Counts what has happened to a channel since it was created. The numbers only grow. */
export interface ChannelTotals {
  /**
   * Calls and streams that were given to a connection. Each attempt of a retried or hedged call counts, and
   * so does the stream of a health check.
   */
  readonly picks: number;
  /** Addresses that were connected. */
  readonly connects: number;
  /** The number of `connects` to addresses that had a connection before. */
  readonly reconnects: number;
  /** Attempts to connect that failed. */
  readonly connectFailures: number;
  /**
   * Connections that the channel itself has left, because their server drains or was silent, or because their
   * address is no longer in the list.
   */
  readonly drains: number;
  /** Connections that ended although neither side had announced it. */
  readonly losses: number;
}
