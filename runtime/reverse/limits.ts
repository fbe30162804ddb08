/**
 * Limits of calls from a server to its clients, each with its reason (runtime/limits.ts has the central
 * ones).
 */

/**
 * Pause between the end of a second session, unless the client has ended it, and the next one on the same
 * connection. The connection itself has its own backoff.
 */
export const reverseRetryMs = 200;
