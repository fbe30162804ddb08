/**
 * Reports that a server refuses a client: sends a frame to the client, and writes a line to the server's log.
 */

import { pushback } from '../../core/errors/pushback.ts';
import type { RpcError } from '../../core/errors/rpc-error.ts';
import { backoffMaxMs } from '../../limits.ts';
import type { Refusal } from '../frames.ts';

/** Returns the log line for a connection that never became a session. */
export const handshakeFailed = (peer: string, why: string): string => `handshake with ${peer} failed: ${why}`;

/**
 * Returns the frame for a refused client with the text `message`. The retry-after time is taken from the
 * error's trailer, if the trailer has one.
 */
export function refusalOf(error: RpcError, message = error.rawMessage): Refusal {
  const { code } = error;
  const retryMs = pushback(error);
  const when = typeof retryMs === 'number' ? { retryMs: Math.min(retryMs, backoffMaxMs.max) } : {};
  return { type: 'refusal', code, message, ...when };
}
