/**
 * Records in the ArrayBuffer of a request the method to which the request belonged. The memory of such a
 * buffer is reclaimed when its call ends. Code that later finds the buffer detached can then explain why. The
 * server writes the note; encoders and `keep()` read it, on the JS thread of the server.
 */
import { Itself } from './itself.ts';

class Lent extends Itself {
  #lease: object;
  #method: string;

  private constructor(buffer: ArrayBuffer, lease: object, method: string) {
    super(buffer);
    this.#lease = lease;
    this.#method = method;
  }

  static set(buffer: ArrayBuffer, lease: object, method: string): void {
    if (#lease in buffer) {
      const lent = buffer as unknown as Lent;
      lent.#lease = lease;
      lent.#method = method;
    } else new Lent(buffer, lease, method);
  }

  static lease(buffer: ArrayBufferLike): object | undefined {
    return #lease in buffer ? buffer.#lease : undefined;
  }

  static method(buffer: ArrayBufferLike): string | undefined {
    return #method in buffer ? buffer.#method : undefined;
  }
}

/** Records that the memory of this buffer is lent to a handler of `method`. */
export function markLent(buffer: ArrayBuffer, lease: object, method: string): void {
  Lent.set(buffer, lease, method);
}

/** Returns the lease of a buffer that was lent to a handler, or undefined for any other buffer. */
export function lentLease(buffer: ArrayBufferLike): object | undefined {
  return Lent.lease(buffer);
}

/** Returns whether the memory of this view is detached. */
export function isDetached(view: ArrayBufferView): boolean {
  try {
    // Throws for a detached buffer. The property `detached` does not exist on all Node versions.
    new Uint8Array(view.buffer as ArrayBuffer);
    return false;
  } catch {
    return true;
  }
}

/** Explains why a view of this buffer is empty, and what to do. */
export function whyDetached(buffer: ArrayBufferLike): string {
  const method = Lent.method(buffer);
  if (method === undefined)
    return 'its ArrayBuffer was transferred or detached, or its lease released: keep it until the call has ended, or give a copy';
  return `its ArrayBuffer was detached: it came with a request of ${method}, whose memory goes back when its handler is done; call keep(request) in that handler, or copy the value there`;
}
