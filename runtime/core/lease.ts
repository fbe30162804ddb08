/**
 * Leases: registered memory that the application holds. It comes from `allocBuffer`, or with a large message whose
 * `bytes` fields are views of it. Used on the JS thread of its context.
 *
 * The rule: after `release()` the memory belongs to someone else. Views of it still exist, and show another's data.
 */
import { imagePlace } from '../codec/memory/image.ts';
import { Itself } from '../codec/memory/itself.ts';
import type { CopyOut } from '../codec/memory/source.ts';
import type { NativeContext } from '../native.ts';

export interface Lease {
  /** The memory. Do not touch it after `release()`. Empty when the lease was lost. */
  readonly bytes: Uint8Array;
  /** Whether `release()` has been called, or the lease was lost as `into` of a call (see the guide, "Deadlines and cancelling"). */
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
  readonly #onRelease: (() => void) | undefined;
  /** A call brings its response here. */
  #lent = false;
  #used = 0;

  /** `onRelease` hears when the application gives it back, not when it is collected. */
  constructor(
    native: NativeContext,
    block: number,
    buffer: ArrayBuffer,
    offset: number,
    length: number,
    onRelease?: () => void,
  ) {
    this.native = native;
    this.block = block;
    this.#buffer = buffer;
    this.#offset = offset;
    this.#length = length;
    this.#onRelease = onRelease;
  }

  get bytes(): Uint8Array {
    this.#bytes ??= new Uint8Array(this.#buffer, this.#offset, this.#length);
    return this.#bytes;
  }

  get released(): boolean {
    return this.#released;
  }

  /** To a call, until it settles. False: another has it, and both would write to it. */
  lend(call: Promise<unknown>): boolean {
    if (this.#lent) return false;
    this.#lent = true;
    // The first to hear of it: whoever awaits the call may use the lease again.
    const settled = (): void => {
      this.#lent = false;
    };
    call.then(settled, settled);
    return true;
  }

  /** For a response that came small: its `bytes` values are copied into this memory, one behind the other, each on 64 bytes. */
  fill(): CopyOut {
    this.#used = 0;
    return (from, start, end) => {
      const bytes = end - start;
      if (bytes === 0 || this.#used + bytes > this.#buffer.byteLength) return from.slice(start, end);
      const value = new Uint8Array(this.#buffer, this.#used, bytes);
      value.set(from.subarray(start, end));
      this.#used = imagePlace(this.#used + bytes);
      return value;
    };
  }

  /** Whether that has put anything into it. */
  get filled(): boolean {
    return this.#used !== 0;
  }

  /** What it can take in all. */
  get capacity(): number {
    return this.#buffer.byteLength;
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.native.releaseBlock(this.block);
    this.#onRelease?.();
  }

  /** A server that does not answer may still write to the memory: the application loses it, and its views become empty. */
  lose(): void {
    if (this.#released) return;
    this.#released = true;
    this.native.takeBlock(this.block);
    // No view can be made of what native code has detached. One that was made before is empty now.
    this.#bytes ??= new Uint8Array();
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/** Where a message keeps its lease: a private field. */
class Leased extends Itself {
  #lease: BlockLease;

  constructor(message: object, lease: BlockLease) {
    super(message);
    this.#lease = lease;
  }

  static set(message: object, lease: BlockLease): void {
    if (#lease in message) message.#lease = lease;
    else new Leased(message, lease);
  }

  static get(message: object): BlockLease | undefined {
    return #lease in message ? message.#lease : undefined;
  }
}

export function setLease(message: object, lease: BlockLease): void {
  Leased.set(message, lease);
}

/**
 * The lease of the memory that a received message's large `bytes` fields are views of; undefined when it has none (the
 * message was small, and owns all its bytes).
 */
export function leaseOf(message: object): Lease | undefined {
  // Callers without types may ask for what no message is.
  return Object(message) === message ? Leased.get(message) : undefined;
}
