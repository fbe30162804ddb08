/**
 * Limits of a channel's connections, each with its reason (runtime/limits.ts has the central limits).
 * Defaults and ranges of the options are taken from here.
 */

/**
 * Longest pause between attempts while a caller waits for a connection. Jitter shortens it by up to a half.
 */
export const awaitedPauseMs = 1000;
/** One more attempt is made this long before the deadline of a waiting call. */
export const lastAttemptMs = 300;
/** Minimum time between two attempts that are made because of deadlines. */
export const attemptGapMs = 250;
/**
 * Number of tokens in the retry budget of a channel. A failure takes one token, a success adds a tenth of
 * one, and retries need more than half of the tokens. These are the values that gRPC suggests.
 */
export const retryTokens = 10;
export const retryTokenPerSuccess = 0.1;
/**
 * A connection that had no call for this time is checked by a ping before its next call. Firewalls and
 * sleeping hosts drop connections after minutes.
 */
export const verifyAfterMs = { default: 60_000, min: 0, max: 86_400_000 } as const;
/** Time limit for the answer to that ping. */
export const verifyTimeoutMs = 2_000;
/**
 * Number of consecutive errors after which one of several addresses is ejected (0 for never), and the time of
 * the first ejection. Each further ejection is 1.6 times as long. gRPC has the same rule (A50).
 */
export const badAnswersInRow = { default: 5, min: 0, max: 1_000_000 } as const;
export const ejectionMs = { default: 30_000, min: 1, max: 300_000 } as const;
export const ejectionMaxMs = 300_000;
/**
 * Interval at which success rates are compared (0 for never), and the number of answers that an address must
 * have given in an interval for its rate to count, as in gRPC (A50).
 */
export const outlierIntervalMs = { default: 10_000, min: 0, max: 86_400_000 } as const;
export const outlierAnswers = { default: 100, min: 1, max: 1_000_000 } as const;
/**
 * Number of addresses whose rates must count before any address is ejected, and the number of standard
 * deviations below the mean at which an address is ejected, as in gRPC (A50).
 */
export const outlierHostsMin = 5;
export const outlierStdevs = 1.9;
/**
 * Share of the connected addresses that may be ejected at the same time. One address may always be ejected
 * while another one is left. gRPC has the same rule (A50).
 */
export const ejectedShareMax = 0.1;
/**
 * The interval at which a connection tries better fabrics, 0 for never. Each try is an attempt to connect.
 */
export const fabricUpgradeMs = { default: 0, min: 0, max: 86_400_000 } as const;
/**
 * Minimum time between two calls of a resolver. When a server ends, many connections are lost at once.
 */
export const resolveMinMs = { default: 5_000, min: 0, max: 86_400_000 } as const;
/** Limit of addresses of one channel, each of which has a connection. */
export const addressesMax = 256;
/**
 * Limit of the other addresses of one server; each of them may take a part of the time of an attempt to
 * connect.
 */
export const doorsMax = 8;
/**
 * Limit of addresses in a list of which a channel uses a subset. Ranking this number of addresses takes a
 * millisecond.
 */
export const listedMax = 10_000;
/**
 * Pause in ms after a list that a resolver has pushed, for each address in it. Lists that come within the
 * pause are combined. A list of 10,000 addresses is used at most twice a second.
 */
export const listPauseMs = 0.05;
/** Number of addresses in a subset, 0 for all; at most as many as a channel may have. */
export const subsetSize = { default: 0, min: 0, max: 256 } as const;
/** Longest id of a client. */
export const subsetIdBytes = 1024;
/** Longest name of a zone. */
export const zoneBytes = 255;
/**
 * Connections to each address. One connection carries a million calls/s. Several connections are for servers
 * whose worker threads share an address. A host with more CPUs than the maximum runs several servers.
 */
export const connectionsPerAddress = { default: 1, min: 1, max: 64 } as const;
/**
 * Limit of one thread's concurrent attempts to connect to one address. It is low enough not to overload a
 * server, and high enough to overlap the waiting times of the attempts.
 */
export const connectingMax = 32;
/**
 * A channel leaves a connection when, for this time, calls have ended at their deadlines and the server has
 * sent nothing. Most pauses of a busy server are shorter. Each time a connection is left, the next connection
 * gets a longer time, up to `silenceMaxMs`. Otherwise clients would reconnect to an overloaded server again
 * and again.
 */
export const silenceMs = 5_000;
export const silenceMaxMs = 60_000;
/**
 * The interval at which a channel checks whether it still has calls in flight that must keep the process
 * alive.
 */
export const keepAliveCheckMs = 200;
/**
 * Factor by which the calls in flight of a server may exceed its share before consistent hashing uses the
 * next server. Lower values spread the calls more evenly, but move more calls away from the caches that have
 * their data.
 */
export const hashMaxLoad = { default: 1.25, min: 1, max: 1_000 } as const;
/** Longest name of a metadata key; the wire has the same limit. */
export const hashKeyBytes = 255;
/** Range of the weight of an address; DNS has weights up to 65,535. */
export const weight = { default: 1, min: 0.001, max: 1_000_000 } as const;
/**
 * Limits of the time until DNS is queried again. The time is the TTL of the answer, or the default for an
 * answer without a TTL. Some DNS servers send a TTL of 0, which would cause one query after another. A TTL of
 * a day would hide a new server for a day.
 */
export const dnsRefreshMs = { default: 30_000, min: 5_000, max: 300_000 } as const;
/**
 * Time limit of a query, and the number of times that the query is sent. c-ares doubles the limit each time,
 * so a query that is never answered fails after 3 s. This is within the default time limit of a resolution,
 * so the addresses of the other family can still be used.
 */
export const dnsTimeoutMs = 1_000;
export const dnsTries = 2;
/**
 * Settings of weighted round robin by load reports, as in gRPC (A58). The four values are, in this order: how
 * long a server must have sent reports before they are used; how long after the last report they are still
 * used; the interval at which weights are computed; and the factor with which the share of failed calls is
 * added to the utilization.
 */
export const loadBlackoutMs = { default: 10_000, min: 0, max: 86_400_000 } as const;
export const loadExpirationMs = { default: 180_000, min: 1, max: 86_400_000 } as const;
export const loadUpdateMs = { default: 1_000, min: 100, max: 86_400_000 } as const;
export const loadErrorPenalty = { default: 1, min: 0, max: 1_000 } as const;
/** Interval at which the file of a service configuration is checked. Each check is one system call. */
export const configLookMs = 1_000;
/**
 * Limit of the size of that file, which is the limit of a ConfigMap of Kubernetes. JS cannot run while the
 * file is read and parsed.
 */
export const configBytesMax = 1024 * 1024;
