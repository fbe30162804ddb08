/**
 * What sessions promise, in one word each, from the weakest to the strongest; SECURITY.md has a chapter on
 * each. Counters pages have the place of the word, from 1 (native/telemetry/counters_page.h).
 */
export const securityLevels = ['none', 'peer', 'bound', 'sealed'] as const;
export type SecurityLevel = (typeof securityLevels)[number];
