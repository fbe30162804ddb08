/** Limits of registries, each with its reason (runtime/limits.ts has the central limits). */

const MiB = 1024 * 1024;

/**
 * Pauses between attempts to reach a registry. The first pause is short, because most failures are a single
 * lost connection.
 */
export const registryPauseMs = { first: 100, max: 5_000 } as const;
/** A watch that lasted this long counts as a success, so the pause after its end is the first pause again. */
export const steadyWatchMs = 5_000;
/** Time limit of one request to a registry; a list of 1,000 endpoints takes far less. */
export const registryTimeoutMs = 5_000;
/**
 * `ask` is the interval at which etcd is asked for a sign of life during a watch without changes. `max` is
 * the time after which a missing answer ends the watch. etcd itself sends a sign of life every ten minutes.
 */
export const etcdSilenceMs = { ask: 10_000, max: 25_000 } as const;
/**
 * Time to live of a registration. etcd accepts every value, but raises small values to its own minimum. This
 * minimum is one and a half election timeouts plus half a second, which is 2 s by default. A server whose
 * event loop or process is blocked for this time is removed from the list.
 */
export const ttlMs = { default: 10_000, min: 2_000, max: 3_600_000 } as const;
/** A lease is renewed this number of times in its time to live, so that a lost answer does not matter. */
export const renewalsPerTtl = 3;
/** Interval at which the health of a registered server is read. */
export const healthCheckMs = 1_000;
/**
 * Longest time for which a watch of the API server may be silent. The API server sends bookmarks about once a
 * minute, so a silent watch is dead or idle, and resuming it costs one request.
 */
export const watchSilenceMs = { default: 90_000, min: 100, max: 3_600_000 } as const;
/** Length of a watch, after which the API server ends it. The given share of the length is random. */
export const watchSeconds = { mean: 240, jitter: 0.2 } as const;
/** Number of EndpointSlices in a page of a list. A slice has at most 1,000 endpoints, mostly 100. */
export const listPage = 250;
/** Limit of the bytes of a page; 250 slices of 1,000 endpoints have fewer bytes. */
export const apiBytesMax = 128 * MiB;
/**
 * Limit of the bytes of an event of a watch. It is far above the size of an EndpointSlice, because etcd, in
 * which the API server keeps its objects, takes at most 1.5 MiB by default.
 */
export const eventBytesMax = 8 * MiB;
/**
 * Limit of the bytes of a message of etcd. The default of grpc-js, 4 MiB, is too small for 10,000 servers
 * with attributes.
 */
export const etcdBytesMax = 128 * MiB;
/** Limit of the pages of a list, because a faulty server might never stop sending pages. */
export const listPagesMax = 200;
