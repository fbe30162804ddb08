/**
 * Limits of calls from a server to its clients, each with its reason. Limits that are not specific to a
 * folder are in runtime/limits.ts.
 */

/**
 * Pause in ms after a second session that the client has not ended itself, before the next session on the
 * same connection. The connection has a backoff of its own.
 */
export const reverseRetryMs = 200;
