/** Limits of registries, each with its reason (runtime/limits.ts has the central ones). */

const MiB = 1024 * 1024;

/**
 * Pauses between attempts to reach a registry. The first one is short, since most failures are one connection
 * that was cut; from `anyFromMs` on the pauses are fully random, so that the clients of a registry that has
 * restarted do not list all at once.
 */
export const registryPauseMs = { first: 100, max: 5_000, anyFrom: 500 } as const;
/** A watch that lasted this long was a success: the pause after its end is the first one again. */
export const steadyWatchMs = 5_000;
/** Time limit of one request to a registry: a list of 1,000 endpoints takes far less. */
export const registryTimeoutMs = 5_000;
/**
 * How often a watch of etcd without changes is asked for a sign of life, and how long one may be missing.
 * etcd itself sends one every ten minutes.
 */
export const etcdSilenceMs = { ask: 10_000, max: 25_000 } as const;
/**
 * Time to live of a registration. etcd refuses none, but raises it to its own minimum (half of a second more
 * than one and a half election timeouts, so 2 s by default). A blocked event loop or a stopped process of
 * that length takes the server out of the list.
 */
export const ttlMs = { default: 10_000, min: 2_000, max: 3_600_000 } as const;
/** A lease is renewed this number of times in its time to live, so that one lost answer does not matter. */
export const renewalsPerTtl = 3;
/** How often the health of a registered server is read. */
export const healthCheckMs = 1_000;
/**
 * How long a watch of the API server may be silent. It sends bookmarks about once a minute, so that a silent
 * one is dead or idle, and resuming it costs one request.
 */
export const watchSilenceMs = { default: 90_000, min: 100, max: 3_600_000 } as const;
/** Length of a watch of the API server, which ends it then, with this share of it at random. */
export const watchSeconds = { mean: 240, jitter: 0.2 } as const;
/** EndpointSlices in a page of a list. A slice has at most 1,000 endpoints, mostly 100. */
export const listPage = 250;
/** Bytes of a page or of a line of a watch: 250 slices of 1,000 endpoints are less. */
export const apiBytesMax = 128 * MiB;
/** Pages of a list; a server that always has one more would never end. */
export const listPagesMax = 200;
