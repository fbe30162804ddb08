/**
 * The retry-after time that the other side gives in an error. It is a trailer entry with the name that gRPC
 * uses.
 */
import type { RpcError } from './rpc-error.ts';

const key = 'retry-pushback-ms';

/**
 * Returns the ms to wait before another attempt, `never` when the server allows no further attempt, or
 * undefined when the server said nothing about it.
 */
export function pushback(error: RpcError): number | 'never' | undefined {
  const given = error.trailer.get(key);
  if (given === undefined) return undefined;
  return typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : 'never';
}

/** Returns a trailer that tells the client to wait `ms` before another attempt. */
export function comeAgainIn(ms: number): Record<string, string> {
  return { [key]: String(ms) };
}
