/**
 * The counters of a context, as native/binding/objects/stats_object.h makes them. Part of the native boundary
 * (native.ts).
 */
/** Counters of one context since its start; plain numbers, read by the demo's table, tests and `info`. */
export interface Stats {
  /** A stream is one; its parts are none. */
  calls: number;
  requests: number;
  streamMessagesSent: number;
  streamMessagesReceived: number;
  inlineSends: number;
  eagerSends: number;
  /** Messages that went in several of these. */
  segmentedMessages: number;
  bulkReads: number;
  bulkReadBytes: number;
  bulkWrites: number;
  bulkWriteBytes: number;
  bulkRequests: number;
  bulkResponses: number;
  replyBuffersPredicted: number;
  replyBuffersAsked: number;
  /** Of frames. What READs and WRITEs move is in `bulkReadBytes` and `bulkWriteBytes` of the server. */
  sentBytes: number;
  receivedBytes: number;
  /**
   * Attempts at calls beyond their first (retries, hedging). Of this thread: one of its contexts has them.
   */
  retries: number;
  /** Completions that were polled. */
  completions: number;
  /** Times that frames of a session began to wait for its peer's credits, or for room in the send queue. */
  stalls: number;
  /** How long they did, of all sessions. */
  stalledMs: number;
  creditFrames: number;
  protocolErrors: number;
  lateResponses: number;
  callsReleasedLate: number;
  callsPendingRelease: number;
  mrHits: number;
  mrMisses: number;
  mrEvictions: number;
  /** Registrations that another thread has made, of the misses. */
  mrBackground: number;
  mrBytes: number;
  arenaBytes: number;
  arenaLeasedBytes: number;
  arenaLeasedBlocks: number;
  sendSlotsFree: number;
  /** Calls that wait for memory of the arena. */
  memoryWaiters: number;
  sessions: number;
  queuePairs: number;
  memoryRegions: number;
  /** Bytes of them. */
  memoryBytes: number;
  memoryWindows: number;
  openFds: number;
  turns: number;
  batches: number;
  sleeps: number;
  /**
   * In the last second or two of traffic: how long the thread did not look for completions, since it was busy
   * elsewhere.
   */
  loopLagMaxUs: number;
}

/** Counters that are how things are, not what has happened since the start. */
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

/** Of several contexts the longest one counts: they share a thread, or others run beside it. */
const longest: ReadonlySet<string> = new Set<keyof Stats>(['loopLagMaxUs']);

/** Adds the counters of one more context to `sum`. */
export function addStats(sum: Partial<Stats>, one: Readonly<Partial<Stats>>): void {
  for (const [name, value] of Object.entries(one) as [keyof Stats, number][]) {
    const before = sum[name] ?? 0;
    sum[name] = longest.has(name) ? Math.max(before, value) : before + value;
  }
}
