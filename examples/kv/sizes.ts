/** Limits that both sides agree on. */

const MiB = 1024 * 1024;

export const valueMax = 64 * MiB;
/**
 * Maximum size of a message with a value, its key and the fields around them. The runtime's default of 64 MiB
 * leaves no room for the key and the fields.
 */
export const messageMax = valueMax + MiB;
/**
 * Size of the client's arena. Where the server cannot read the client's memory in place (some containers
 * forbid that), values are copied into the arena. Requests get half of the arena, and the load of load.ts
 * puts up to 104 MiB at once. The arena grows to that size as needed.
 */
export const arenaBytes = 512 * MiB;
