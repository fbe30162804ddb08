/**
 * The errors of a client's calls and streams that need a look at their session: what was refused here, and
 * what the server has answered.
 */

import type { FabricContext } from '../../boundary/fabric-context.ts';
import type { Incoming } from '../../boundary/incoming/incoming.ts';
import type { Target } from '../../boundary/outgoing/submission.ts';
import {
  beyondInto,
  memoryFailure,
  processedName,
  tooLarge,
  unimplemented,
  unnamed,
} from '../../core/errors/failure.ts';
import { type Processed, RpcError } from '../../core/errors/rpc-error.ts';
import { errorCode } from '../../core/errors/status.ts';
import { takeDetails } from '../../core/errors/status-details.ts';
import type { Metadata } from '../../core/metadata.ts';
import { Ev, Reason } from '../../native/native.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras } from './call-extras.ts';

/** What native code refused to send. `processed`: of the whole stream, whose OPEN may be out already. */
export function requestRefusal(
  context: FabricContext,
  target: Target,
  path: string,
  reason: number,
  processed: Processed = 'no',
): RpcError {
  if (reason !== Reason.tooLarge) return memoryFailure(context.native, reason, path, processed);
  const { messageMaxBytes, peer = 'server' } = target;
  return tooLarge(path, context.outgoing.bulk.refusedBytes, messageMaxBytes, peer, processed);
}

/**
 * What the server has answered to a call of `method` with the event at `at`. `trailer`: what came with it;
 * the details in it go into the error. `begun`: the handler may have, whatever became of this part of a
 * stream.
 */
export function statusError(
  { id, path }: Pick<ClientMethod, 'id' | 'path'>,
  incoming: Incoming,
  events: Int32Array,
  at: number,
  status: number,
  trailer: Metadata | undefined,
  begun = false,
): RpcError {
  const details = takeDetails(trailer);
  const word = processedName(events[at + Ev.processed]!);
  const processed = begun && word === 'no' ? 'maybe' : word;
  const told = incoming.text(at);
  // A server that does not have the service knows of the method no more than its id.
  const text = told === unimplemented(unnamed(id)) ? unimplemented(path) : told;
  return new RpcError(errorCode(status), text, { trailer, details, processed });
}

/** The server could have answered, but `into` was all the memory that there was for it. */
export function intoError(
  { path }: ClientMethod,
  incoming: Incoming,
  events: Int32Array,
  at: number,
  extras: CallExtras | undefined,
): RpcError {
  incoming.discard(at);
  return beyondInto(path, events[at + Ev.beyondReplyBuffer]! >>> 0, extras?.into?.capacity ?? 0);
}
