/**
 * Reads requests from stdin. `rdma-rpc call` and `rdma-rpc bench` use this file on the main thread.
 */
import { fstatSync } from 'node:fs';

/**
 * Yields the text as it arrives. Throws an Error for a directory, which Node would treat as an empty stream.
 */
export function stdinText(): AsyncIterable<string> {
  if (fstatSync(0).isDirectory()) throw new Error('stdin is a directory');
  return process.stdin.setEncoding('utf8');
}
