/**
 * The errors of a client's calls and streams that depend on their session: submissions refused on this side,
 * and error responses of the server.
 */

import type { FabricContext } from '../../boundary/fabric-context.ts';
import type { Incoming } from '../../boundary/incoming/incoming.ts';
import type { Target } from '../../boundary/outgoing/submission.ts';
import {
  beyondInto,
  beyondRequest,
  memoryFailure,
  processedName,
  tooLarge,
  unimplemented,
  unnamed,
} from '../../core/errors/failure.ts';
import { takeNotRun } from '../../core/errors/not-run.ts';
import { type Processed, RpcError } from '../../core/errors/rpc-error.ts';
import { errorCode, Status } from '../../core/errors/status.ts';
import { takeDetails } from '../../core/errors/status-details.ts';
import type { Metadata } from '../../core/metadata.ts';
import { Ev, Reason } from '../../native/native.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras } from './call-extras.ts';

/**
 * Returns the error for a submission that native code has refused. For a stream, `processed` describes the
 * whole stream, whose OPEN may already have been sent.
 */
export function requestRefusal(
  context: FabricContext,
  target: Target,
  path: string,
  reason: number,
  processed: Processed = 'no',
): RpcError {
  if (reason !== Reason.tooLarge) return memoryFailure(context, reason, path, processed);
  const { messageMaxBytes, peer = 'server' } = target;
  return tooLarge(path, context.outgoing.bulk.refusedBytes, messageMaxBytes, peer, processed);
}

/**
 * Returns the error for the server's response in the event at `at` to a call of `method`. `trailer` is the
 * response's trailer, whose details become the details of the error. `begun` is set when the handler may have
 * started, even if this part of a stream seems to show that it has not.
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
  const notRun = takeNotRun(trailer) && status === Status.UNAVAILABLE;
  const word = notRun ? 'no' : processedName(events[at + Ev.processed]!);
  const processed = begun && word === 'no' ? 'maybe' : word;
  const told = incoming.text(at);
  // A server that does not have the service knows only the id of the method, so this function puts the path
  // into the text.
  const text = told === unimplemented(unnamed(id)) ? unimplemented(path) : told;
  return new RpcError(errorCode(status), text, { trailer, details, processed });
}

/**
 * Returns the error for a response that this side refused because of the call itself. Either `into` is too
 * small and other memory is not allowed, or the request fills the arena.
 */
export function refusedResponse(
  { path }: ClientMethod,
  { native }: FabricContext,
  at: number,
  extras: CallExtras | undefined,
): RpcError {
  const bytes = native.events[at + Ev.refusedBytes]! >>> 0;
  const into = extras?.mayOverflow === false ? extras.into : undefined;
  return into === undefined
    ? beyondRequest(path, bytes, native.arenaBytes)
    : beyondInto(path, bytes, into.capacity);
}
