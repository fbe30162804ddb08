/**
 * How much is tried of what has no end: random inputs, lives of channels, ends of processes. `npm test` tries
 * a fifth, which finds most of what an edit breaks, in the time that somebody waits for it; with
 * RDMA_RPC_EXTENT=all, as CI has it, all of it.
 */
export const everything = process.env.RDMA_RPC_EXTENT === 'all';

/** Of so many runs, how many are made. */
export const runs = (all: number): number => (everything ? all : Math.ceil(all / 5));

/**
 * Whether the cell of a table in two directions is tried. A fifth has some of each row and of each column.
 */
export const tried = (row: number, column: number): boolean => everything || (row + column) % 5 === 0;
