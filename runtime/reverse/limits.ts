/**
 * Limits of calls from a server to its clients, each with its reason. Limits that are not specific to a
 * folder are in runtime/limits.ts.
 */

/**
 * Pause in ms between two second sessions on the same connection, if the client has not ended the first of
 * them itself. The connection itself has a separate backoff.
 */
export const reverseRetryMs = 200;
