/**
 * Chooses the time for which servers in the tests of states wait for clients to learn of a shutdown: for
 * ever, or not at all.
 */
export const patience = { ms: 86_400_000 };
