/**
 * Limits of a channel's connections, each with its reason (runtime/limits.ts has the central ones). Defaults
 * and ranges of the options are taken from here.
 */

/**
 * Pauses of connections from this length on are spread widely (backoff.ts): a server that was unavailable for
 * this long may have thousands of waiting clients.
 */
export const backoffAnyFromMs = 1000;
/**
 * Longest pause between attempts while a caller waits for a connection; jitter makes it up to half as short.
 */
export const awaitedPauseMs = 1000;
/** One more attempt is made this long before the deadline of a waiting call. */
export const lastAttemptMs = 300;
/** Minimum time between two attempts that are made because of deadlines. */
export const attemptGapMs = 250;
/**
 * Tokens for retries: a failure costs one, a success adds a tenth, and retries need more than half of the
 * tokens. As gRPC suggests.
 */
export const retryTokens = 10;
export const retryTokenPerSuccess = 0.1;
/**
 * A connection without calls for this long is first checked by a ping, since firewalls and sleeping hosts
 * drop connections after minutes.
 */
export const verifyAfterMs = { default: 60_000, min: 0, max: 86_400_000 } as const;
/** Time limit for the answer to that ping. */
export const verifyTimeoutMs = 2_000;
/**
 * Consecutive errors after which one of several addresses is ejected (0 for never), and the first ejection
 * time, which grows by 1.6 as well. As in gRPC (A50).
 */
export const badAnswersInRow = { default: 5, min: 0, max: 1_000_000 } as const;
export const ejectionMs = { default: 30_000, min: 1, max: 300_000 } as const;
export const ejectionMaxMs = 300_000;
/**
 * How often success rates are compared (0 for never), and how many answers an address must have given since
 * then for its rate to count. As in gRPC (A50).
 */
export const outlierIntervalMs = { default: 10_000, min: 0, max: 86_400_000 } as const;
export const outlierAnswers = { default: 100, min: 1, max: 1_000_000 } as const;
/**
 * Number of addresses that must have that many answers, and the number of standard deviations below the mean
 * at which an address is ejected. As in gRPC (A50).
 */
export const outlierHostsMin = 5;
export const outlierStdevs = 1.9;
/**
 * Share of the connected addresses that may be ejected at the same time; one may always be ejected while
 * another one is left. As in gRPC (A50).
 */
export const ejectedShareMax = 0.1;
/** How often a connection tries better fabrics, 0 for never. Each try is an attempt to connect. */
export const fabricUpgradeMs = { default: 0, min: 0, max: 86_400_000 } as const;
/**
 * Minimum time between two calls of a resolver, since many connections are lost at once when a server ends.
 */
export const resolveMinMs = { default: 5_000, min: 0, max: 86_400_000 } as const;
/** Limit of addresses of one channel, each of which has a connection. */
export const addressesMax = 256;
/** Limit of other addresses of one server: each may take its part of the time of an attempt to connect. */
export const doorsMax = 8;
/**
 * Limit of addresses in a list of which a channel uses a subset: the ranks of as many take a millisecond.
 */
export const listedMax = 10_000;
/** Number of addresses in a subset, 0 for all; at most as many as a channel may have. */
export const subsetSize = { default: 0, min: 0, max: 256 } as const;
/** Longest id of a client, as its other texts. */
export const subsetIdBytes = 1024;
/** Longest name of a zone. */
export const zoneBytes = 255;
/**
 * Connections to each address. One carries a million calls/s; more are for servers whose worker threads share
 * an address, and hosts with more CPUs than this run several servers.
 */
export const connectionsPerAddress = { default: 1, min: 1, max: 64 } as const;
/**
 * Limit of concurrent attempts of one thread to connect to one address: few enough not to overload a server,
 * and enough to overlap their waiting times.
 */
export const connectingMax = 32;
/**
 * A connection is left when calls have ended at their deadlines for this long, and nothing has come from the
 * server meanwhile. Longer than most pauses of a busy server; each further time is longer, up to
 * `silenceMaxMs`, so that many clients do not come again and again to a server that is overloaded.
 */
export const silenceMs = 5_000;
export const silenceMaxMs = 60_000;
/** How often a channel checks whether it still has calls in flight that must keep the process alive. */
export const keepAliveCheckMs = 200;
/**
 * How far the calls in flight of a server may exceed its share before consistent hashing uses the next one.
 * Lower values spread more evenly and move more calls away from their caches.
 */
export const hashMaxLoad = { default: 1.25, min: 1, max: 1_000 } as const;
/** Longest name of a metadata key, as on the wire. */
export const hashKeyBytes = 255;
/** Range of the weight of an address; DNS has weights up to 65,535. */
export const weight = { default: 1, min: 0.001, max: 1_000_000 } as const;
/**
 * Time until DNS is asked again: the TTL of the answer within these limits, and the default when there is no
 * TTL. Some servers say 0, which would be a query for each answer; and a TTL of a day would hide a new server
 * for a day.
 */
export const dnsRefreshMs = { default: 30_000, min: 5_000, max: 300_000 } as const;
/**
 * Time limit of a query, and how often it is sent. c-ares doubles the limit each time, so that a question
 * that is never answered ends after 3 s: within the default time limit of a resolution, since the other
 * family of addresses may have been answered.
 */
export const dnsTimeoutMs = 1_000;
export const dnsTries = 2;
/**
 * Weighted round robin by load reports. How long reports must have come before they count, how long they must
 * be missing until they no longer count, how often weights are computed, and how much the share of failed
 * calls adds to the utilization. As in gRPC (A58).
 */
export const loadBlackoutMs = { default: 10_000, min: 0, max: 86_400_000 } as const;
export const loadExpirationMs = { default: 180_000, min: 1, max: 86_400_000 } as const;
export const loadUpdateMs = { default: 1_000, min: 100, max: 86_400_000 } as const;
export const loadErrorPenalty = { default: 1, min: 0, max: 1_000 } as const;
/** How often the file of a service configuration is looked at. Each look is one call of the system. */
export const configLookMs = 1_000;
