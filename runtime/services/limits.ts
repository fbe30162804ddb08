/**
 * Limits of the health port, each with its reason. Limits that are not specific to a folder are in
 * runtime/limits.ts.
 */

/**
 * Limit of connections of the health port that have not sent a whole request yet. A whole request is answered
 * at once.
 */
export const healthHttpConnections = 64;
export const healthHttpTimeoutMs = 5_000;
export const tcpPort = { default: 0, min: 0, max: 65_535 } as const;
