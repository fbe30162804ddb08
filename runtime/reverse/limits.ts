/**
 * Limits of calls from a server to its clients, each with its reason (runtime/limits.ts has the central
 * ones).
 */

/**
 * From the end of the session that a client serves by to the next one on the same connection, when the client
 * has not ended it. The connection itself has a back-off of its own.
 */
export const reverseRetryMs = 200;
