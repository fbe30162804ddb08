/** Limits of the DNS resolvers, each with its reason. */

/**
 * Time until DNS is asked again: the TTL of the answer within these limits, and the default when there is no
 * TTL. Some servers say 0, which would be a query for each answer; and a TTL of a day would hide a new server
 * for a day.
 */
export const dnsRefreshMs = { default: 30_000, min: 5_000, max: 300_000 } as const;
/**
 * Time limit of a query, and how often it is sent. c-ares doubles the limit each time, so that a question that
 * is never answered ends after 3 s: within the default time limit of a resolution, since the other family of
 * addresses may have been answered.
 */
export const dnsTimeoutMs = 1_000;
export const dnsTries = 2;
