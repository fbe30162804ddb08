/**
 * Memory that another process may write to at any time, even while a message is read from it: large messages over fabrics of shared memory.
 * Decoders look at each byte once, or take a copy first. Marked by runtime/lane, asked by Source.
 */
const buffers = new WeakSet<ArrayBufferLike>();
let any = false;

/** From now on messages in `buffer` are read with that in mind, also by whoever decodes a part of it later. */
export function markShared(buffer: ArrayBufferLike): void {
  any = true;
  buffers.add(buffer);
}

export function isShared(buffer: ArrayBufferLike): boolean {
  return any && buffers.has(buffer);
}
