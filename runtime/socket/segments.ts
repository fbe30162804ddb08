/** Cuts the buffers of one write into segments of a limited size. */
import { segmentBytes } from './limits.ts';

/**
 * Returns the buffers of each segment, in order. Buffers are cut without a copy; empty buffers are left out.
 */
export function segmentsOf(chunks: readonly Uint8Array[], limit = segmentBytes): Uint8Array[][] {
  const segments: Uint8Array[][] = [];
  let last: Uint8Array[] = [];
  let room = 0;
  for (const chunk of chunks) {
    for (let from = 0; from < chunk.byteLength; ) {
      if (room === 0) {
        last = [];
        segments.push(last);
        room = limit;
      }
      const part = chunk.subarray(from, from + room);
      last.push(part);
      room -= part.byteLength;
      from += part.byteLength;
    }
  }
  return segments;
}
