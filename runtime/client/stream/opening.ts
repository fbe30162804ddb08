/**
 * The first frame of a stream: with the request in it, if there is only one and it fits, so that a handler begins a round trip earlier. Used by client
 * streams.
 */
import { timeLeftUs } from '../../lane/deadlines.ts';
import { noMessage } from '../../lane/plain-types.ts';
import { PartFlag, PartKind, partHeader, partHeaderBytes, withEntries } from '../../stream/part-header.ts';
import type { ClientMethod } from '../client-method.ts';
import type { ClientStream } from './client-stream.ts';
import type { ClientStreams } from './client-streams.ts';

/** `result`: as of `streams.open`. `whole`: the request is in it. Throws what the request's encoder throws. */
export function sendOpening(
  streams: ClientStreams,
  stream: ClientStream,
  method: ClientMethod,
  request: unknown,
  entries: Uint8Array | undefined,
  deadlineMs: number,
): { readonly result: number; readonly whole: boolean } {
  const metadataBytes = partHeaderBytes + (entries?.byteLength ?? 0);
  const whole = !method.requestStream && streams.fits(method.requestType, request, metadataBytes);
  const header = partHeader(stream.number, 0, whole ? 1 : 0, PartKind.open, whole ? PartFlag.last : 0);
  const type = whole ? method.requestType : noMessage;
  const metadata = entries === undefined ? header : withEntries(header, entries);
  return { result: streams.open(stream, timeLeftUs(deadlineMs), type, request, metadata), whole };
}
