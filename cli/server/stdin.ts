/** Requests that come from stdin. Used by `rdma-rpc call` and `rdma-rpc bench`; on the main thread. */
import { fstatSync } from 'node:fs';

/** The text as it comes. Throws an Error for a directory, which Node takes for an empty stream. */
export function stdinText(): AsyncIterable<string> {
  if (fstatSync(0).isDirectory()) throw new Error('stdin is a directory');
  return process.stdin.setEncoding('utf8');
}
