/**
 * The first frame of a stream. If the stream has a single request that fits, the frame contains this request,
 * so that the handler begins one round trip earlier. Client streams use this file.
 */

import { noMessage } from '../../boundary/outgoing/plain-types.ts';
import { timeLeftUs } from '../../boundary/time/deadlines.ts';
import { requestFault } from '../../core/errors/failure.ts';
import type { RpcError } from '../../core/errors/rpc-error.ts';
import { type Lengths, lengthsOf } from '../../core/lengths.ts';
import { PartFlag, PartKind, partHeader, partHeaderBytes, withEntries } from '../../stream/part-header.ts';
import { requestRefusal } from '../session/call-faults.ts';
import { type ClientStreams, notNow } from './client-streams.ts';
import type { StreamRow } from './stream-row.ts';

/**
 * The result of opening a stream. `whole` means that the frame contains the request, and `begun` that
 * requests follow. With `not now` the frame could not be sent yet. With an RpcError the frame cannot be sent
 * at all, and the caller gets this error.
 */
export type Opening = 'whole' | 'begun' | 'not now' | RpcError;

export function sendOpening(
  streams: ClientStreams,
  stream: StreamRow,
  entries: Uint8Array | undefined,
  deadlineMs: number,
): Opening {
  const { method, request } = stream;
  try {
    const metadataBytes = partHeaderBytes + (entries?.byteLength ?? 0);
    const whole = !method.requestStream && streams.fits(method.requestType, request, metadataBytes);
    const header = partHeader(stream.number, 0, whole ? 1 : 0, PartKind.open, whole ? PartFlag.last : 0);
    const type = whole ? method.requestType : noMessage;
    const metadata = entries === undefined ? header : withEntries(header, entries);
    const result = streams.open(stream, timeLeftUs(deadlineMs), type, request, metadata);
    if (result === notNow) return 'not now';
    if (result < 0) return requestRefusal(streams.context, streams.target, method.path, -result);
    if (!whole) return 'begun';
    if (method.check.left > 0) method.check.look(request);
    return 'whole';
  } catch (cause) {
    return requestFault(method.path, cause);
  }
}

/** Lengths of the buffers of a request that waits to be encoded. */
export function requestLengths({ method, request }: StreamRow): Lengths | undefined {
  return method.requestStream ? undefined : lengthsOf(method.requestType, request);
}

/**
 * Returns whether a stream can be opened again. A stream whose requests were read from an iterable cannot be
 * sent again.
 */
export function canRepeat(stream: StreamRow): boolean {
  if (stream.method.requestStream || stream.reader.complete) return false;
  // If the request's memory is resizable, its content may have changed after the request was sent.
  return requestLengths(stream)?.resizable !== true;
}
