/**
 * `bytes` fields with a threshold of their own (rdma_rpc.bulk_threshold) instead of the sink's. A sink
 * without out-of-line values notes that this message has a candidate; runtime/boundary then encodes it with a
 * sink that supports them. Called by generated code.
 */
import { byteLengthOf } from '../memory/intrinsic.ts';
import type { Sink } from '../memory/sink.ts';
import { writeBytes } from './write.ts';

/** Replaces the sink's threshold for one value; returns the old one. */
export function enter(sink: Sink, threshold: number): number {
  const usual = sink.gatherBytes;
  if (usual !== Number.POSITIVE_INFINITY) {
    usualApart = sink.apartBytes;
    sink.gatherBytes = Math.min(threshold, sink.alignBytes);
    // A sink that copies everything continues to do so, since it has no room for the list of out-of-line
    // values.
    if (usualApart !== Number.POSITIVE_INFINITY) sink.apartBytes = threshold;
  }
  return usual;
}

let usualApart = 0;

/** Restores the threshold that `enter` has returned. */
export function leave(sink: Sink, usual: number): void {
  if (usual === Number.POSITIVE_INFINITY) return;
  sink.gatherBytes = usual;
  sink.apartBytes = usualApart;
}

export function note(sink: Sink, value: ArrayBufferView, threshold: number): void {
  const length = byteLengthOf(value);
  if (sink.gatherBytes === Number.POSITIVE_INFINITY && length >= threshold && length !== 0) sink.planned++;
}

export function writeBulk(
  sink: Sink,
  at: number,
  value: Uint8Array,
  limit: number,
  field: string,
  threshold: number,
): number {
  const usual = enter(sink, threshold);
  const end = writeBytes(sink, at, value, limit, field);
  leave(sink, usual);
  note(sink, value, threshold);
  return end;
}
