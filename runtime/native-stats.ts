/** The counters of a context, as native/binding/objects/stats_object.h makes them. Part of the native boundary (native.ts). */
/** Counters of one context since its start; plain numbers, read by the demo's table, tests and `info`. */
export interface Stats {
  calls: number;
  requests: number;
  inlineSends: number;
  eagerSends: number;
  bulkReads: number;
  bulkReadBytes: number;
  bulkWrites: number;
  bulkWriteBytes: number;
  bulkRequests: number;
  bulkResponses: number;
  grantsPredicted: number;
  grantsAsked: number;
  creditFrames: number;
  protocolErrors: number;
  lateResponses: number;
  callsHeld: number;
  callsHeldNow: number;
  mrHits: number;
  mrMisses: number;
  mrEvictions: number;
  mrBytes: number;
  arenaBytes: number;
  arenaLeasedBytes: number;
  arenaLeasedBlocks: number;
  sessions: number;
  queuePairs: number;
  memoryRegions: number;
  memoryWindows: number;
  openFds: number;
  turns: number;
  batches: number;
  sleeps: number;
}
