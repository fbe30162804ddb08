/** Connections and bytes that went through one end of a tunnel. */
export interface RelayCounts {
  /** Connections that are open now. */
  open: number;
  /** Connections that were accepted since the start. */
  accepted: number;
  /** Connections that could not be made to the other side. */
  refused: number;
  /** Connections that ended with an error. */
  broken: number;
  /** Bytes from the programs of this side. */
  sentBytes: number;
  /** Bytes to the programs of this side. */
  receivedBytes: number;
}

export const newCounts = (): RelayCounts => ({
  open: 0,
  accepted: 0,
  refused: 0,
  broken: 0,
  sentBytes: 0,
  receivedBytes: 0,
});
