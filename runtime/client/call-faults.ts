/** The errors of a client's calls and streams that need a look at their session: what was refused here, and what the server has answered. */

import { memoryFailure, sentName, tooLarge } from '../core/failure.ts';
import type { Metadata } from '../core/metadata.ts';
import { RpcError, type Sent } from '../core/rpc-error.ts';
import { errorCode } from '../core/status.ts';
import { takeDetails } from '../core/status-details.ts';
import type { FabricContext } from '../lane/fabric-context.ts';
import type { Incoming } from '../lane/incoming.ts';
import type { Target } from '../lane/submission.ts';
import { Ev, Reason } from '../native.ts';

/** What native code refused to send. `sent`: of the whole stream, whose OPEN may be out already. */
export function requestRefusal(
  context: FabricContext,
  target: Target,
  path: string,
  reason: number,
  sent: Sent = 'no',
): RpcError {
  if (reason !== Reason.tooLarge) return memoryFailure(context.native, reason, path, sent);
  return tooLarge(path, context.outgoing.bulk.refusedBytes, target.maxMessageBytes, 'server', sent);
}

/**
 * What the server has answered with the event at `at`. `trailer`: what came with it; the details in it go into the error. `begun`: the handler
 * may have, whatever became of this part of a stream.
 */
export function statusError(
  incoming: Incoming,
  events: Int32Array,
  at: number,
  status: number,
  trailer: Metadata | undefined,
  begun = false,
): RpcError {
  const details = takeDetails(trailer);
  const word = sentName(events[at + Ev.sent]!);
  const sent = begun && word === 'no' ? 'maybe' : word;
  return new RpcError(errorCode(status), incoming.text(at), { metadata: trailer, details, sent });
}
