/**
 * Limits of calls from a server to its clients, each with its reason (runtime/limits.ts has the central
 * ones).
 */

const MiB = 1024 * 1024;

/** Calls of a server to one client that wait for their answers, and that run at the client. */
export const reverseCalls = 256;
/**
 * Bytes of calls to one client that it has not begun to read, and of its answers that the server has not; one
 * message may always wait. As much as the largest message by default.
 */
export const reverseQueueBytes = 64 * MiB;
/**
 * A server that says for so long that another serves on this connection is believed. It may say so shortly
 * after that one has ended.
 */
export const reverseTakenMs = 5_000;
/**
 * From the end of the stream that a client serves by to its opening anew. The connection itself has a
 * back-off of its own.
 */
export const reverseRetryMs = 200;
