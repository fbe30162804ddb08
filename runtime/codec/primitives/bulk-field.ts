/**
 * Handles `bytes` fields with a threshold of their own (rdma_rpc.bulk_threshold), which replaces the writer's
 * threshold. A writer without out-of-line values notes that this message has a candidate; runtime/boundary
 * then encodes it with a writer that supports them. Generated code calls it.
 */
import { byteLengthOf } from '../memory/intrinsic.ts';
import type { Writer } from '../memory/writer.ts';
import { writeBytes } from './write.ts';

/** Replaces the writer's threshold for one value, and returns the old threshold. */
export function enter(writer: Writer, threshold: number): number {
  const usual = writer.gatherBytes;
  if (usual !== Number.POSITIVE_INFINITY) {
    usualApart = writer.apartBytes;
    writer.gatherBytes = Math.min(threshold, writer.alignBytes);
    // A writer that copies everything continues to do so, because it has no room for the list of out-of-line
    // values.
    if (usualApart !== Number.POSITIVE_INFINITY) writer.apartBytes = threshold;
  }
  return usual;
}

let usualApart = 0;

/** Restores the threshold that `enter` has returned. */
export function leave(writer: Writer, usual: number): void {
  if (usual === Number.POSITIVE_INFINITY) return;
  writer.gatherBytes = usual;
  writer.apartBytes = usualApart;
}

export function note(writer: Writer, value: ArrayBufferView, threshold: number): void {
  const length = byteLengthOf(value);
  if (writer.gatherBytes === Number.POSITIVE_INFINITY && length >= threshold && length !== 0)
    writer.planned++;
}

export function writeBulk(
  writer: Writer,
  at: number,
  value: Uint8Array,
  limit: number,
  field: string,
  threshold: number,
): number {
  const usual = enter(writer, threshold);
  const end = writeBytes(writer, at, value, limit, field);
  leave(writer, usual);
  note(writer, value, threshold);
  return end;
}
