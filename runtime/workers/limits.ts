/**
 * Limits of worker groups, each with its reason (runtime/limits.ts has the central ones). Used on their main
 * thread.
 */

/** Number of threads of serveWorkers(); the default is one for each CPU. */
export const workers = { default: undefined, min: 1, max: 256 } as const;
/**
 * Time from starting a worker until it listens. Loading an application can take seconds; a worker that never
 * listens must not block the start.
 */
export const workerStartTimeoutMs = 30_000;
/** Pause before a worker that ended is started again: it doubles from one early end to the next. */
export const workerRestartMs = { first: 100, max: 10_000 } as const;
/**
 * A worker that does not answer within this time is skipped for a new connection, and asked last for the next
 * ones. An idle thread answers within a millisecond.
 */
export const workerAnswerMs = 200;
/**
 * How long a new connection waits for a worker that answers, and how many connections may wait. Less than
 * `connectTimeoutMs`, so that clients receive the reason.
 */
export const workerWaitMs = 4_000;
export const workerWaiting = 1_024;
/** How long a worker that has drained may take for `onDrained`: enough to write what is buffered. */
export const workerDrainedMs = 5_000;
/**
 * How long the metrics of a worker are waited for. A scrape has 10 s as a rule, and a thread that is busy for
 * longer than this is left out of one.
 */
export const workerMetricsMs = 1_000;
