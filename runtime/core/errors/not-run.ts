/**
 * Tells the caller that the handler has not run, where a response cannot use the flag *not run* for this.
 * With UNAVAILABLE, the flag also says that the server is leaving, and the client then leaves the connection.
 * If the server is not leaving, an UNAVAILABLE response has an entry in its trailer instead. The server's
 * responder and the calls of a client use this file.
 */
import type { Metadata } from '../metadata.ts';

const key = 'rdma-rpc-not-run';

/** Adds the entry to the trailer of an error. */
export function markNotRun(trailer: Metadata): void {
  trailer.set(key, '1');
}

/**
 * Removes the entry from the trailer of an error, and returns whether it was there. The reason is that a
 * handler may pass on the error that it got from another server. Then a handler has run, and the entry would
 * be wrong.
 */
export function takeNotRun(trailer: Metadata | undefined): boolean {
  if (trailer?.get(key) === undefined) return false;
  trailer.delete(key);
  return true;
}
