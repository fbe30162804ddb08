/**
 * Time for which servers of the tests of states wait for clients to learn that they shut down: for ever, or
 * not at all.
 */
export const patience = { ms: 86_400_000 };
