/**
 * Limits of calls from a server to its clients, each with its reason (runtime/limits.ts has the central
 * ones).
 */

/**
 * Pause before a client offers to serve again on the same connection, after a session that it did not end
 * itself. Reconnecting has its own back-off.
 */
export const reverseRetryMs = 200;
