/** Turns the options of one call into what the call carries along; nothing for a call that has none of them. Used by a channel. */
import { CallExtras } from '../call/call-extras.ts';
import { failure, reasonOf } from '../call/failure.ts';
import { BlockLease } from '../call/lease.ts';
import { Metadata } from '../call/metadata.ts';
import { encodeMetadata } from '../call/metadata-wire.ts';
import { checkedTimeMs } from './options.ts';
import type { CallOptions } from './types.ts';

/** The call's time limit in ms, -1 for none: the call's own or else `defaultMs`, but no more than its context has left. Throws a RangeError. */
export function callTimeoutMs(options: CallOptions, defaultMs: number): number {
  const ownMs = options.timeoutMs === undefined ? defaultMs : checkedTimeMs('timeoutMs', options.timeoutMs);
  const leftMs = options.context?.timeoutMs();
  if (leftMs === undefined) return ownMs;
  return ownMs < 0 ? leftMs : Math.min(ownMs, leftMs);
}

/** Throws what the call is to be rejected with: CANCELLED for a signal that has fired already, a TypeError or RangeError for a bad value. */
export function callExtras(path: string, options: CallOptions): CallExtras | undefined {
  const { signal, metadata, into, intoOverflow, onHeader, onTrailer, context, waitForReady } = options;
  if (
    signal === undefined &&
    metadata === undefined &&
    into === undefined &&
    intoOverflow === undefined &&
    onHeader === undefined &&
    onTrailer === undefined &&
    context === undefined &&
    waitForReady === undefined
  ) {
    return undefined;
  }
  const parent = context?.signal;
  for (const { aborted, reason } of [signal, parent].filter((each) => each !== undefined)) {
    if (aborted) throw failure(reasonOf(reason), path, 'no', '', reason);
  }
  if (into !== undefined && !(into instanceof BlockLease && !into.released)) {
    throw new TypeError(`${path}: into: give a lease of allocBuffer() that has not been released`);
  }
  if (intoOverflow !== undefined && intoOverflow !== 'error' && intoOverflow !== 'lease') {
    throw new TypeError(`${path}: intoOverflow is 'error' or 'lease'`);
  }
  if (waitForReady !== undefined && typeof waitForReady !== 'boolean') {
    throw new TypeError(`${path}: waitForReady is true or false`);
  }
  let bytes: Uint8Array | undefined;
  if (metadata !== undefined) {
    const given = metadata instanceof Metadata ? metadata : new Metadata(metadata);
    if (given.size > 0) bytes = encodeMetadata(given);
  }
  return new CallExtras({ signal, parent, into, intoOverflow, onHeader, onTrailer, waitForReady }, bytes);
}
