/**
 * The security levels of sessions, from the weakest to the strongest. SECURITY.md explains each level.
 * Counters pages contain the position of the level in this list, counted from 1
 * (native/telemetry/counters_page.h).
 */
export const securityLevels = ['none', 'peer', 'bound', 'sealed'] as const;
export type SecurityLevel = (typeof securityLevels)[number];
