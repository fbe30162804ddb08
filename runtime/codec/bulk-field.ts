/**
 * `bytes` fields with a threshold of their own (rdma_rpc.bulk_threshold), instead of the sink's. A sink that leaves nothing out notes that this message
 * has something to leave out: runtime/call then takes one that does. Called by generated code.
 */
import { boundBytes } from './bound.ts';
import type { Sink } from './sink.ts';
import { writeBytes } from './write.ts';

/** The sink's own threshold, replaced for one value; returns what it was. */
export function enter(sink: Sink, threshold: number): number {
  const usual = sink.gatherBytes;
  if (usual !== Number.POSITIVE_INFINITY) sink.gatherBytes = threshold;
  return usual;
}

export function note(sink: Sink, value: Uint8Array, threshold: number): void {
  if (sink.gatherBytes === Number.POSITIVE_INFINITY && value.length >= threshold && value.length !== 0)
    sink.planned++;
}

export function boundBulk(value: Uint8Array, sink: Sink, field: string, threshold: number): number {
  const usual = enter(sink, threshold);
  const bound = boundBytes(value, sink, field);
  sink.gatherBytes = usual;
  note(sink, value, threshold);
  return bound;
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
  sink.gatherBytes = usual;
  note(sink, value, threshold);
  return end;
}
