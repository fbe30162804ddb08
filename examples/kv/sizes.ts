/** Limits that both sides agree on. */

const MiB = 1024 * 1024;

export const valueMax = 64 * MiB;
/** A value, its key and the fields around them. The runtime's default of 64 MiB leaves no room for the latter. */
export const messageMax = valueMax + MiB;
