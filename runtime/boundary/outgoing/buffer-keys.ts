/**
 * The identity of application buffers: a number per ArrayBuffer, by which the registration cache knows the
 * buffer. Addresses cannot be the identity, because V8 reuses them after garbage collection. The bulk path
 * and registerBuffer use it, on this JS thread.
 */
import { isSharedArrayBuffer } from 'node:util/types';

const keys = new WeakMap<ArrayBuffer, number>();
let last = 0;

/**
 * Returns the key of a buffer. It is above 0, constant for the life of the buffer, and never reused for
 * another buffer.
 */
export function bufferKey(buffer: ArrayBuffer): number {
  const known = keys.get(buffer);
  if (known !== undefined) return known;
  keys.set(buffer, ++last);
  return last;
}

/** Returns whether a message has used this buffer before. */
export function hasKey(buffer: ArrayBuffer): boolean {
  return keys.has(buffer);
}

/**
 * Returns whether this memory can be registered with a device. A SharedArrayBuffer has no identity with which
 * it could be registered. A resizable buffer may lose its pages during the peer's READ, which would end the
 * connection with all of its calls.
 */
export function staysInPlace(buffer: ArrayBufferLike): boolean {
  return !isSharedArrayBuffer(buffer) && (buffer as { resizable?: boolean }).resizable !== true;
}

/** Returns the key that the two words of an event hold. */
export function keyFromWords(low: number, high: number): number {
  return (high >>> 0) * 2 ** 32 + (low >>> 0);
}
