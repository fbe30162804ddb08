/**
 * Leases: registered memory that the application holds. It comes from `allocBuffer`, or with a large message
 * whose `bytes` fields are views of it. Used on the JS thread of its context.
 *
 * The rule: released memory belongs to other code, so no view of it remains: its ArrayBuffer is detached.
 */
import { alignedOffset } from '../codec/memory/aligned-message.ts';
import { Itself } from '../codec/memory/itself.ts';
import { lentLease, markLent } from '../codec/memory/lent.ts';
import type { CopyOut } from '../codec/memory/source.ts';
import type { NativeContext } from '../native/native.ts';
import { RpcError } from './errors/rpc-error.ts';
import { Status } from './errors/status.ts';

export interface Lease {
  /**
   * The memory. Empty after it was released or lost: its ArrayBuffer is then detached, with all views of it.
   */
  readonly bytes: Uint8Array;
  /**
   * Whether `release()` has been called, or the lease was lost as `into` of a call (see the guide, "Deadlines
   * and cancelling").
   */
  readonly released: boolean;
  /**
   * Releases the memory. Further calls do nothing. Without a release, the memory is released when the lease
   * is garbage-collected.
   */
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
  /** For a request: the application keeps it beyond its call. */
  kept = false;
  /** A call writes its response here. */
  #lent = false;
  #used = 0;

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

  /**
   * Lends the memory to a call until it settles. Returns false when another call has it; both would write to
   * it.
   */
  lend(call: Promise<unknown>): boolean {
    if (this.#lent) return false;
    this.#lent = true;
    // Runs before other listeners, so that code awaiting the call may use the lease again.
    const settled = (): void => {
      this.#lent = false;
    };
    call.then(settled, settled);
    return true;
  }

  /**
   * Returns an allocator for the `bytes` values of a short response: they are copied into this memory, one
   * behind the other, each at a multiple of 64 bytes.
   */
  fill(): CopyOut {
    this.#used = 0;
    return (from, start, end) => {
      const bytes = end - start;
      if (bytes === 0 || this.#used + bytes > this.#buffer.byteLength) return from.slice(start, end);
      const value = new Uint8Array(this.#buffer, this.#used, bytes);
      value.set(from.subarray(start, end));
      this.#used = alignedOffset(this.#used + bytes);
      return value;
    };
  }

  /** Whether that allocator has been used. */
  get filled(): boolean {
    return this.#used !== 0;
  }

  /** Notes that a handler of this method has the memory until its call ends. */
  lendTo(method: string): void {
    markLent(this.#buffer, this, method);
  }

  /** Size of the memory. */
  get capacity(): number {
    return this.#buffer.byteLength;
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    // All views become empty here, so that none shows the later content of the memory.
    this.native.takeBlock(this.block);
    // No view can be created of a detached buffer. One that was created before is empty now.
    this.#bytes ??= new Uint8Array();
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/** The private field in which a message keeps its lease. */
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

/** How deep `keep()` searches for views of lent memory in a request that an interceptor has changed. */
const keepDepth = 4;

function leaseIn(value: unknown, depth = 0): BlockLease | undefined {
  if (typeof value !== 'object' || value === null || depth > keepDepth) return undefined;
  const own = Leased.get(value);
  if (own !== undefined) return own;
  if (ArrayBuffer.isView(value)) {
    const lease = lentLease(value.buffer);
    return lease instanceof BlockLease ? lease : undefined;
  }
  for (const each of Object.values(value)) {
    const lease = leaseIn(each, depth + 1);
    if (lease !== undefined) return lease;
  }
  return undefined;
}

/**
 * Keeps the memory of a request beyond its call, and returns the request. Without it the large `bytes` values
 * of a request are empty once its handler is done and the call has been answered. The memory is then released
 * by `leaseOf(request).release()`, or when the values are garbage-collected. Also accepts a value of the
 * request. A request that owns all its bytes, as small ones do, is returned unchanged. Throws
 * FAILED_PRECONDITION when the call has ended.
 */
export function keep<T extends object>(request: T): T {
  const lease = leaseIn(request);
  if (lease === undefined) return request;
  if (lease.released)
    throw new RpcError(
      Status.FAILED_PRECONDITION,
      'keep: the memory of this request has been given back already; call keep(request) before its handler is done',
    );
  lease.kept = true;
  return request;
}

export function setLease(message: object, lease: BlockLease): void {
  Leased.set(message, lease);
}

/** `leaseOf` for messages received by this library. */
export function blockLeaseOf(message: unknown): BlockLease | undefined {
  return typeof message === 'object' && message !== null ? Leased.get(message) : undefined;
}

/**
 * Returns the lease of the memory that a received message's large `bytes` fields are views of, or undefined
 * when it has none (a small message owns all its bytes).
 */
export function leaseOf(message: object): Lease | undefined {
  // Untyped callers may pass a value that is not an object.
  return Object(message) === message ? Leased.get(message) : undefined;
}
