/** The errors that a client's stream makes, in the words of unary calls. */

import { memoryFailure, sentName, tooLarge } from '../../core/failure.ts';
import { textOf } from '../../core/foreign.ts';
import { RpcError, type Sent } from '../../core/rpc-error.ts';
import { errorCode, Status } from '../../core/status.ts';
import { takeDetails } from '../../core/status-details.ts';
import { Ev, Reason } from '../../native.ts';
import type { ClientStreams } from './client-streams.ts';

function text(cause: unknown): string {
  return textOf(cause);
}

/** A message that cannot be decoded, or a part that must not be. */
export function responseFault(path: string, cause: unknown): RpcError {
  const why = `${path}: the response cannot be used: ${text(cause)}`;
  return new RpcError(Status.INTERNAL, why, { sent: 'yes', cause });
}

/** What native code refused to send. `sent`: of the whole stream, whose OPEN may be out already. */
export function refusal(path: string, streams: ClientStreams, reason: number, sent: Sent): RpcError {
  if (reason !== Reason.tooLarge) return memoryFailure(streams.context.native, reason, path, sent);
  const { refusedBytes } = streams.context.outgoing.bulk;
  return tooLarge(path, refusedBytes, streams.target.maxMessageBytes, 'server', sent);
}

/** What the server has answered. `begun`: the handler may have, whatever became of this part. */
export function statusError(streams: ClientStreams, at: number, status: number, begun: boolean): RpcError {
  const { whole } = streams.incoming;
  const metadata = whole.responseMetadata(at)?.trailer;
  const details = takeDetails(metadata);
  const word = sentName(streams.context.native.events[at + Ev.sent]!);
  const sent = begun && word === 'no' ? 'maybe' : word;
  return new RpcError(errorCode(status), whole.text(at), { metadata, details, sent });
}
