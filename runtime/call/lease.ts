/**
 * Leases: registered memory that the application holds. It comes from `allocBuffer`, or with a large message whose
 * `bytes` fields are views of it. Used on the JS thread of its context.
 *
 * The rule: after `release()` the memory belongs to someone else. Views of it still exist, and show another's data.
 */
import type { NativeContext } from '../native.ts';

export interface Lease {
  /** The memory. Do not touch it after `release()`. */
  readonly bytes: Uint8Array;
  /** Whether `release()` has been called. */
  readonly released: boolean;
  /** Gives the memory back. Calls after the first do nothing. What is never released returns when it is collected. */
  release(): void;
  [Symbol.dispose](): void;
}

export class BlockLease implements Lease {
  readonly native: NativeContext;
  readonly block: number;
  readonly #buffer: ArrayBuffer;
  readonly #offset: number;
  readonly #length: number;
  #bytes: Uint8Array | undefined;
  #released = false;

  constructor(native: NativeContext, block: number, buffer: ArrayBuffer, offset: number, length: number) {
    this.native = native;
    this.block = block;
    this.#buffer = buffer;
    this.#offset = offset;
    this.#length = length;
  }

  get bytes(): Uint8Array {
    this.#bytes ??= new Uint8Array(this.#buffer, this.#offset, this.#length);
    return this.#bytes;
  }

  get released(): boolean {
    return this.#released;
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.native.releaseBlock(this.block);
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

const leases = new WeakMap<object, BlockLease>();

export function setLease(message: object, lease: BlockLease): void {
  leases.set(message, lease);
}

/**
 * The lease of the memory that a received message's large `bytes` fields are views of; undefined when it has none (the
 * message was small, and owns all its bytes).
 */
export function leaseOf(message: object): Lease | undefined {
  return leases.get(message);
}
