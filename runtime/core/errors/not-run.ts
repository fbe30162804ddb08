/**
 * Tells the caller that the handler has not run, in the one case where the flag *not run* of a response must
 * not be used: with UNAVAILABLE the flag says that the server is leaving, and the client then leaves the
 * connection. Such an error has an entry in its trailer instead. The server's responder and the calls of a
 * client use this file.
 */
import type { Metadata } from '../metadata.ts';

const key = 'rdma-rpc-not-run';

/** Adds the entry to the trailer of an error. */
export function markNotRun(trailer: Metadata): void {
  trailer.set(key, '1');
}

/**
 * Removes the entry from the trailer of an error, and returns whether it was there. A handler that passes an
 * error of another server on must not pass this entry on with it, because the handler has run.
 */
export function takeNotRun(trailer: Metadata | undefined): boolean {
  if (trailer?.get(key) === undefined) return false;
  trailer.delete(key);
  return true;
}
