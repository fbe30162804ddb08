/** Cuts the buffers of one write into segments of a limited size. */
import { segmentBytes } from './limits.ts';

/** A piece of data that a program has written, as the Writable holds it. */
export interface Queued {
  readonly chunk: unknown;
  readonly encoding: BufferEncoding;
}

export function bytesOf(buffers: readonly Uint8Array[]): number {
  let bytes = 0;
  for (const each of buffers) bytes += each.byteLength;
  return bytes;
}

/** Returns whether the memory of a buffer was transferred, so that the buffer has no bytes any more. */
export function isDetached({ buffer, byteLength }: Uint8Array): boolean {
  if (byteLength !== 0) return false;
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    // Views cannot be made of detached memory. Node 20 has no property that says whether memory is detached.
    return true;
  }
}

/** Returns the error for a buffer that has lost its bytes, which the peer would miss. */
export const bufferLost = (): TypeError =>
  new TypeError(
    'a written buffer was transferred or resized before the callback of its write. ' +
      'Wait for the callback, or write a copy',
  );

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
