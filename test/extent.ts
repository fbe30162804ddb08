/**
 * Limits the number of cases of tests whose number of cases is unlimited: random inputs, lives of channels,
 * ends of processes. `npm test` tries a fifth, which finds most errors of an edit in the time that a
 * developer waits for it. With RDMA_RPC_EXTENT=all, as in CI, all cases are tried.
 */
export const everything = process.env.RDMA_RPC_EXTENT === 'all';

/** Returns how many of this number of runs are made. */
export const runs = (all: number): number => (everything ? all : Math.ceil(all / 5));

/**
 * Returns whether the cell of a table in two directions is tried. The fifth contains some cells of each row
 * and of each column.
 */
export const tried = (row: number, column: number): boolean => everything || (row + column) % 5 === 0;
