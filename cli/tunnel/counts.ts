/** What has gone through an end of a tunnel. */
export interface RelayCounts {
  open: number;
  /** Connections that came, that could not be made, and that ended with an error. */
  accepted: number;
  refused: number;
  broken: number;
  /** Bytes from the programs of this side, and to them. */
  sentBytes: number;
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
