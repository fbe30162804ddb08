/**
 * Which block of which arena an ArrayBuffer is the memory of: noted in the buffer itself when it is given
 * out, since to ask native code costs as much as the rest of what is done for a gather entry. On its
 * context's JS thread.
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

  /** A buffer that has been transferred has no memory any more. */
  static get(buffer: ArrayBufferLike, native: NativeContext): number {
    return #block in buffer && buffer.#native === native && buffer.byteLength !== 0 ? buffer.#block : 0;
  }
}

/** The block's memory, the same object each time. */
export function blockMemory(native: NativeContext, block: number): ArrayBuffer {
  const buffer = native.blockBuffer(block);
  Stamp.set(buffer, native, block);
  return buffer;
}

/** The block of a buffer that `allocBuffer` has given. */
export function blockOf(native: NativeContext, buffer: ArrayBuffer): number {
  const known = Stamp.get(buffer, native);
  if (known !== 0) return known;
  const block = native.blockOf(buffer);
  Stamp.set(buffer, native, block);
  return block;
}

/** The block that it is the memory of, if it is known to be of this arena, or 0. */
export function stampedBlock(native: NativeContext, buffer: ArrayBufferLike): number {
  return Stamp.get(buffer, native);
}
