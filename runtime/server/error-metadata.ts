/**
 * Header, trailer and details of an error response. The status matters more than the metadata, so metadata
 * that does not fit is left out. The responder of a session uses this file.
 */

import { markNotRun, takeNotRun } from '../core/errors/not-run.ts';
import type { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { detailsKey, encodeDetails } from '../core/errors/status-details.ts';
import { textOf } from '../core/foreign.ts';
import { Metadata } from '../core/metadata.ts';
import { encodeResponseMetadata, entryBytes } from '../core/metadata-wire.ts';
import { AnswerCut } from '../core/warnings.ts';
import { metadataBytes } from '../limits.ts';
import type { ServerCall } from './server-call.ts';

/** Returns the trailer of the call, followed by the trailer of the error. */
function trailerOf(call: ServerCall, error: RpcError | undefined): Metadata {
  const trailer = new Metadata([...(call.givenTrailer ?? []), ...(error?.trailer ?? [])]);
  takeNotRun(trailer);
  if (call.notRun && error?.code === Status.UNAVAILABLE) markNotRun(trailer);
  return trailer;
}

/** Returns `given`. Throws when `given` does not fit into a slot of the connection. */
export function fitting(given: Uint8Array | undefined, roomBytes: number): Uint8Array | undefined {
  if (given === undefined || given.byteLength <= roomBytes) return given;
  throw new RangeError(
    `metadata of ${given.byteLength} bytes, but a slot of this connection has room for ${roomBytes} (slotBytes)`,
  );
}

/**
 * Returns the metadata of an error. `roomBytes` is the room in a slot. When metadata is left out, `onCut` is
 * called with an error that names the part that was left out.
 */
export function errorMetadata(
  call: ServerCall,
  error: RpcError | undefined,
  roomBytes: number,
  onCut: (cut: AnswerCut) => void,
): Uint8Array | undefined {
  const cut = (what: string, fault: unknown): void =>
    onCut(
      new AnswerCut(`the ${what} of this error were left out: ${textOf(fault)}`, { cause: error ?? fault }),
    );
  // An error from an older copy of this package may have no details.
  const details = error?.details ?? [];
  let rest: Uint8Array | undefined;
  try {
    rest = fitting(encodeResponseMetadata(call.givenHeader, trailerOf(call, error)), roomBytes);
  } catch (fault) {
    cut(details.length === 0 ? 'header and trailer' : 'header, trailer and details', fault);
    return undefined;
  }
  if (error === undefined || details.length === 0) return rest;
  try {
    const encoded = encodeDetails(error.code, error.rawMessage, details);
    const usedBytes = (rest?.byteLength ?? 0) + entryBytes + detailsKey.length;
    const most = Math.max(0, Math.min(metadataBytes, roomBytes) - usedBytes);
    if (encoded.byteLength > most) throw new RangeError(`${encoded.byteLength} bytes, at most ${most} fit`);
    const trailer = trailerOf(call, error);
    trailer.set(detailsKey, encoded);
    return encodeResponseMetadata(call.givenHeader, trailer);
  } catch (fault) {
    cut('details', fault);
    return rest;
  }
}
