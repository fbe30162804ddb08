/**
 * Marks memory that another process may change at any time, even while a message in it is being read. Large
 * messages on shared-memory fabrics lie in such memory. Decoders read each byte of such memory only once, or
 * copy it first. runtime/boundary sets the mark when it first hands out a buffer, and Source checks it.
 */
import { Itself } from './itself.ts';

class Shared extends Itself {
  readonly #shared = true;

  static mark(buffer: ArrayBufferLike): void {
    if (!Shared.has(buffer)) new Shared(buffer);
  }

  static has(buffer: ArrayBufferLike): boolean {
    return #shared in buffer;
  }
}

/** Makes all later decoders of messages in `buffer`, or in parts of it, read it as shared memory. */
export function markShared(buffer: ArrayBufferLike): void {
  Shared.mark(buffer);
}

export function isShared(buffer: ArrayBufferLike): boolean {
  return Shared.has(buffer);
}
