/**
 * Retry-after: when to try again, as the other side says in an error. It is a trailer entry with the name
 * that gRPC uses.
 */
import type { RpcError } from './rpc-error.ts';

const key = 'retry-pushback-ms';

/** Returns what the server said about another attempt: ms to wait, `never`, or nothing. */
export function pushback(error: RpcError): number | 'never' | undefined {
  const given = error.trailer.get(key);
  if (given === undefined) return undefined;
  return typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : 'never';
}

/** Returns the trailer with that delay. */
export function comeAgainIn(ms: number): Record<string, string> {
  return { [key]: String(ms) };
}
