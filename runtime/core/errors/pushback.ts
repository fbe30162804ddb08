/**
 * When to come again, as the other side has said with an error: an entry of its trailer, by the name that
 * gRPC has for it.
 */
import type { RpcError } from './rpc-error.ts';

const key = 'retry-pushback-ms';

/** What the server said about another attempt: ms to wait, `never`, or nothing. */
export function pushback(error: RpcError): number | 'never' | undefined {
  const given = error.trailer.get(key);
  if (given === undefined) return undefined;
  return typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : 'never';
}

/** The trailer that says so. */
export function comeAgainIn(ms: number): Record<string, string> {
  return { [key]: String(ms) };
}
