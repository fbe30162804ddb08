/**
 * Limits of worker groups, each with its reason. Limits that are not specific to a folder are in
 * runtime/limits.ts. This file runs on the main thread of a group.
 */

/** Number of threads of serveWorkers(). The default is one for each CPU. */
export const workers = { default: undefined, min: 1, max: 256 } as const;
/**
 * Time limit in ms from the start of a worker until it listens. Loading an application can take seconds, but
 * a worker that never listens must not block the start.
 */
export const workerStartTimeoutMs = 30_000;
/**
 * Pause in ms before a worker that has ended is started again. The pause doubles each time the worker ends
 * early.
 */
export const workerRestartMs = { first: 100, max: 10_000 } as const;
/**
 * When a worker does not answer within this time in ms, a new connection goes to another worker. When later
 * connections arrive, the silent worker is asked last. An idle thread answers within a millisecond.
 */
export const workerAnswerMs = 200;
/**
 * The time in ms for which a new connection waits for a worker that answers, and the number of connections
 * that may wait. The time is less than `connectTimeoutMs`, so that clients receive the reason.
 */
export const workerWaitMs = 4_000;
export const workerWaiting = 1_024;
/**
 * Time limit in ms for the `onDrained` of a worker that has drained. It is long enough to write buffered
 * data.
 */
export const workerDrainedMs = 5_000;
/**
 * Time limit in ms for the metrics of a worker. A scrape usually has 10 s. A thread that is busy for longer
 * than this limit is left out of the scrape.
 */
export const workerMetricsMs = 1_000;
