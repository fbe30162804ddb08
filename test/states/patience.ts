/**
 * How long servers of the tests of states wait for clients to hear that they are to go: for ever, or not at
 * all.
 */
export const patience = { ms: 86_400_000 };
