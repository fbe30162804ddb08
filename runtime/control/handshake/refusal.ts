/** How a server says that a client is turned away: by a frame to the client, by a line of its log. */

import { pushback } from '../../core/errors/pushback.ts';
import type { RpcError } from '../../core/errors/rpc-error.ts';
import { backoffMaxMs } from '../../limits.ts';
import type { Refusal } from '../frames.ts';

/** The line of a log for a connection that never became a session. */
export const handshakeFailed = (peer: string, why: string): string => `handshake with ${peer} failed: ${why}`;

/** `message`: what the client is told. When to come again is in the error's trailer, if anywhere. */
export function refusalOf(error: RpcError, message = error.rawMessage): Refusal {
  const { code } = error;
  const retryMs = pushback(error);
  const when = typeof retryMs === 'number' ? { retryMs: Math.min(retryMs, backoffMaxMs.max) } : {};
  return { type: 'refusal', code, message, ...when };
}
