/** Limits of the health port, each with its reason (runtime/limits.ts has the central ones). */

/** Connections of the health port that have not sent a whole request yet; a request is answered at once. */
export const healthHttpConnections = 64;
export const healthHttpTimeoutMs = 5_000;
export const tcpPort = { default: 0, min: 0, max: 65_535 } as const;
