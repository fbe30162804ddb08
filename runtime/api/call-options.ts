/** Turns the options of one call into what the call carries along; nothing for a call that has none of them. Used by a channel. */
import { CallExtras } from '../call/call-extras.ts';
import { failure } from '../call/failure.ts';
import { BlockLease } from '../call/lease.ts';
import { Metadata } from '../call/metadata.ts';
import { encodeMetadata } from '../call/metadata-wire.ts';
import { Reason } from '../native.ts';
import type { CallOptions } from './types.ts';

/** Throws what the call is to be rejected with: CANCELLED for a signal that has fired already, a TypeError or RangeError for a bad value. */
export function callExtras(path: string, options: CallOptions): CallExtras | undefined {
  const { signal, metadata, into, onTrailer } = options;
  if (signal === undefined && metadata === undefined && into === undefined && onTrailer === undefined) {
    return undefined;
  }
  if (signal?.aborted) throw failure(Reason.cancelled, path, 'no', '', signal.reason);
  if (into !== undefined && !(into instanceof BlockLease && !into.released)) {
    throw new TypeError(`${path}: into: give a lease of allocBuffer() that has not been released`);
  }
  let bytes: Uint8Array | undefined;
  if (metadata !== undefined) {
    const given = metadata instanceof Metadata ? metadata : new Metadata(metadata);
    if (given.size > 0) bytes = encodeMetadata(given);
  }
  return new CallExtras(signal, bytes, into, onTrailer);
}
