/** Limits that both sides agree on. */

const MiB = 1024 * 1024;

export const valueMax = 64 * MiB;
/**
 * A value, its key and the fields around them. The runtime's default of 64 MiB leaves no room for the latter
 * two.
 */
export const messageMax = valueMax + MiB;
/**
 * The arena of the client. Where the server cannot read the client's memory in place (some containers forbid
 * that), values are copied into the arena, of which requests get half: the load of load.ts puts up to 104 MiB
 * at once. The arena grows to that size as needed.
 */
export const arenaBytes = 512 * MiB;
