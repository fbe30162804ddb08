/**
 * The counters of a context, as native/binding/objects/stats_object.h makes them. They are part of the native
 * boundary (native.ts).
 */
/**
 * Counters of one context since its start, as plain numbers. The demo's table, tests and `info` read them.
 */
export interface Stats {
  /** A stream counts as one call; its parts do not count. */
  calls: number;
  requests: number;
  streamMessagesSent: number;
  streamMessagesReceived: number;
  inlineSends: number;
  eagerSends: number;
  /** Messages that were sent in several SENDs. */
  segmentedMessages: number;
  bulkReads: number;
  bulkReadBytes: number;
  bulkWrites: number;
  bulkWriteBytes: number;
  bulkRequests: number;
  bulkResponses: number;
  replyBuffersPredicted: number;
  replyBuffersAsked: number;
  /**
   * Bytes of frames. Bytes moved by READs and WRITEs are counted in `bulkReadBytes` and `bulkWriteBytes` of
   * the server.
   */
  sentBytes: number;
  receivedBytes: number;
  /**
   * Number of further attempts at calls, after their first attempts (retries, hedging). The counter belongs
   * to the thread; one of the thread's contexts keeps it.
   */
  retries: number;
  /** Number of polled completions. */
  completions: number;
  /**
   * The number of times that frames of a session began to wait for credits of the peer or for room in the
   * send queue.
   */
  stalls: number;
  /** Total time of these waits in all sessions, in milliseconds. */
  stalledMs: number;
  creditFrames: number;
  protocolErrors: number;
  lateResponses: number;
  callsReleasedLate: number;
  callsPendingRelease: number;
  mrHits: number;
  mrMisses: number;
  mrEvictions: number;
  /** The number of misses whose registration was made by another thread. All misses include these. */
  mrBackground: number;
  mrBytes: number;
  arenaBytes: number;
  arenaLeasedBytes: number;
  arenaLeasedBlocks: number;
  sendSlotsFree: number;
  /** Number of calls that wait for memory of the arena. */
  memoryWaiters: number;
  sessions: number;
  queuePairs: number;
  memoryRegions: number;
  /** Total size of these regions, in bytes. */
  memoryBytes: number;
  memoryWindows: number;
  openFds: number;
  turns: number;
  batches: number;
  sleeps: number;
  /**
   * The longest time for which the thread did not poll completions because it was busy with other work,
   * within the last one or two seconds of traffic.
   */
  loopLagMaxUs: number;
}

/** The counters when no context is open. */
export const noStats: Readonly<Stats> = {
  calls: 0,
  requests: 0,
  streamMessagesSent: 0,
  streamMessagesReceived: 0,
  inlineSends: 0,
  eagerSends: 0,
  segmentedMessages: 0,
  bulkReads: 0,
  bulkReadBytes: 0,
  bulkWrites: 0,
  bulkWriteBytes: 0,
  bulkRequests: 0,
  bulkResponses: 0,
  replyBuffersPredicted: 0,
  replyBuffersAsked: 0,
  sentBytes: 0,
  receivedBytes: 0,
  retries: 0,
  completions: 0,
  stalls: 0,
  stalledMs: 0,
  creditFrames: 0,
  protocolErrors: 0,
  lateResponses: 0,
  callsReleasedLate: 0,
  callsPendingRelease: 0,
  mrHits: 0,
  mrMisses: 0,
  mrEvictions: 0,
  mrBackground: 0,
  mrBytes: 0,
  arenaBytes: 0,
  arenaLeasedBytes: 0,
  arenaLeasedBlocks: 0,
  sendSlotsFree: 0,
  memoryWaiters: 0,
  sessions: 0,
  queuePairs: 0,
  memoryRegions: 0,
  memoryBytes: 0,
  memoryWindows: 0,
  openFds: 0,
  turns: 0,
  batches: 0,
  sleeps: 0,
  loopLagMaxUs: 0,
};

/** Counters that show a current state and not a total since the start. */
export const gauges: ReadonlySet<keyof Stats> = new Set([
  'callsPendingRelease',
  'mrBytes',
  'arenaBytes',
  'arenaLeasedBytes',
  'arenaLeasedBlocks',
  'sendSlotsFree',
  'memoryWaiters',
  'sessions',
  'queuePairs',
  'memoryRegions',
  'memoryBytes',
  'memoryWindows',
  'openFds',
  'loopLagMaxUs',
]);

/** Times whose maximum over several contexts is taken, instead of their sum. */
const longest: ReadonlySet<string> = new Set<keyof Stats>(['loopLagMaxUs']);

/** Adds the counters of another context to `sum`. */
export function addStats(sum: Partial<Stats>, one: Readonly<Partial<Stats>>): void {
  for (const [name, value] of Object.entries(one) as [keyof Stats, number][]) {
    const before = sum[name] ?? 0;
    sum[name] = longest.has(name) ? Math.max(before, value) : before + value;
  }
}
