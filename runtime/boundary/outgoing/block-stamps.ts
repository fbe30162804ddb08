/**
 * Remembers which block of which arena an ArrayBuffer belongs to. This information is kept in the buffer
 * itself, because asking native code would cost as much as all other work for a gather entry. It is used on
 * the JS thread of its context.
 */

import { Itself } from '../../codec/memory/itself.ts';
import { markShared } from '../../codec/memory/shared-memory.ts';
import type { NativeContext } from '../../native/native.ts';

class Stamp extends Itself {
  readonly #native: NativeContext;
  readonly #block: number;

  private constructor(buffer: ArrayBuffer, native: NativeContext, block: number) {
    super(buffer);
    this.#native = native;
    this.#block = block;
  }

  static set(buffer: ArrayBuffer, native: NativeContext, block: number): void {
    if (#block in buffer) return;
    new Stamp(buffer, native, block);
    if (native.peersKeepAccess) markShared(buffer);
  }

  /** A buffer that has been transferred no longer has memory. */
  static get(buffer: ArrayBufferLike, native: NativeContext): number {
    return #block in buffer && buffer.#native === native && buffer.byteLength !== 0 ? buffer.#block : 0;
  }
}

/** Returns the block's memory, the same object each time. */
export function blockMemory(native: NativeContext, block: number): ArrayBuffer {
  const buffer = native.blockBuffer(block);
  Stamp.set(buffer, native, block);
  return buffer;
}

/** Returns the block of a buffer that came from `allocBuffer`. */
export function blockOf(native: NativeContext, buffer: ArrayBuffer): number {
  const known = Stamp.get(buffer, native);
  if (known !== 0) return known;
  const block = native.blockOf(buffer);
  Stamp.set(buffer, native, block);
  return block;
}

/** Returns the block of this arena that the buffer belongs to, or 0 when no block is recorded. */
export function stampedBlock(native: NativeContext, buffer: ArrayBufferLike): number {
  return Stamp.get(buffer, native);
}
