/**
 * Limits of how a channel connects, each with its reason (runtime/limits.ts has the central ones). Options
 * that a user may set take their default and range from here.
 */

/**
 * Pauses of connections from here on are 0 to twice as long: a server that was away for so long may have
 * thousands of clients.
 */
export const backoffAnyFromMs = 1000;
/**
 * Longest pause between attempts while somebody waits for a connection; chance makes it up to half as short.
 */
export const awaitedPauseMs = 1000;
/** Before a waiting call's deadline there is one more attempt, this long before it. */
export const lastAttemptMs = 300;
/** Least time between two attempts that are made because of deadlines. */
export const attemptGapMs = 250;
/**
 * Tokens for calls that are made again: a failure costs one, a success brings a tenth, and there must be more
 * than half. As gRPC suggests.
 */
export const retryTokens = 10;
export const retryTokenPerSuccess = 0.1;
/**
 * A connection without calls for so long is tried with a ping first. Firewalls and sleeping hosts forget
 * connections after minutes.
 */
export const verifyAfterMs = { default: 60_000, min: 0, max: 86_400_000 } as const;
/** The answer to that ping. */
export const verifyTimeoutMs = 2_000;
/**
 * Bad answers in a row before an address of several is left out for a while, 0: never; and the first such
 * while. They grow by 1.6, too. As gRPC (A50).
 */
export const badAnswersInRow = { default: 5, min: 0, max: 1_000_000 } as const;
export const ejectionMs = { default: 30_000, min: 1, max: 300_000 } as const;
export const ejectionMaxMs = 300_000;
/**
 * How often the shares of good answers are compared, 0: never; and how many answers an address must have
 * given since, for its share to mean something. As gRPC (A50).
 */
export const outlierIntervalMs = { default: 10_000, min: 0, max: 86_400_000 } as const;
export const outlierAnswers = { default: 100, min: 1, max: 1_000_000 } as const;
/**
 * Addresses that must have so many answers, and standard deviations below their mean at which one is left
 * out. As gRPC (A50).
 */
export const outlierHostsMin = 5;
export const outlierStdevs = 1.9;
/**
 * Share of the connected addresses that may be left out at once; one may always be, while there is another.
 * As gRPC (A50).
 */
export const ejectedShareMax = 0.1;
/**
 * How often a connection that could go over a better fabric looks whether that has come, 0: never. Each look
 * is an attempt to connect.
 */
export const fabricUpgradeMs = { default: 0, min: 0, max: 86_400_000 } as const;
/** Between two questions to a resolver. Losses come in swarms when a server ends. */
export const resolveMinMs = { default: 5_000, min: 0, max: 86_400_000 } as const;
/** Addresses of one channel, each with a connection. */
export const addressesMax = 256;
/**
 * Attempts of one thread to connect to one address at once: fewer than make a crowd for a server, enough for
 * what each waits for.
 */
export const connectingMax = 32;
/** How often a channel looks whether it still has calls in flight that must keep the process alive. */
export const keepAliveCheckMs = 200;
