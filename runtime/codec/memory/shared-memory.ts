/**
 * Memory that another process may write to at any time, even while a message is read from it: large messages
 * over fabrics of shared memory. Decoders look at each byte once, or take a copy first. Marked by
 * runtime/boundary when a buffer is first given out, asked by Source.
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

/**
 * From now on messages in `buffer` are read with that in mind, also by whoever decodes a part of it later.
 */
export function markShared(buffer: ArrayBufferLike): void {
  Shared.mark(buffer);
}

export function isShared(buffer: ArrayBufferLike): boolean {
  return Shared.has(buffer);
}
