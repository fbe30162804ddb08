/**
 * The identity of application buffers: a number per ArrayBuffer, by which the registration cache knows it.
 * Addresses would not do, since V8 reuses them after collection. Used by the bulk path and registerBuffer, on
 * this JS thread.
 */
const keys = new WeakMap<ArrayBuffer, number>();
let last = 0;

/** Above 0, the same for the life of the buffer, never given to another. */
export function bufferKey(buffer: ArrayBuffer): number {
  const known = keys.get(buffer);
  if (known !== undefined) return known;
  keys.set(buffer, ++last);
  return last;
}

/** Whether a message has had this buffer before. */
export function hasKey(buffer: ArrayBuffer): boolean {
  return keys.has(buffer);
}

/** A key from the two words of an event. */
export function keyFromWords(low: number, high: number): number {
  return (high >>> 0) * 2 ** 32 + (low >>> 0);
}
