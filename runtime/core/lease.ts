/**
 * Leases: registered memory that the application holds. The application gets a lease from `allocBuffer`, or
 * with a large message whose `bytes` fields are views of the lease's memory. A lease is used on the JS thread
 * of its context.
 *
 * Released memory belongs to other code. Its ArrayBuffer is therefore detached, so that no view of the memory
 * remains.
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
   * The memory. It is empty after the lease was released or lost, because the ArrayBuffer is then detached
   * with all its views.
   */
  readonly bytes: Uint8Array;
  /**
   * True after `release()` was called. Also true after a call lost the lease that it had as `into` (see the
   * guide, "Deadlines and cancelling").
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
  /** Whether the application keeps the memory of a request beyond the request's call. */
  kept = false;
  /** Whether a call writes its response into this memory. */
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
   * Lends the memory to a call until the call settles. Returns false when another call uses the memory,
   * because both calls would write to it.
   */
  lend(call: Promise<unknown>): boolean {
    if (this.#lent) return false;
    this.#lent = true;
    // This listener runs before all other listeners, so that code that awaits the call may use the lease
    // again.
    const settled = (): void => {
      this.#lent = false;
    };
    call.then(settled, settled);
    return true;
  }

  /**
   * Returns an allocator for the `bytes` values of a short response. The values are copied into this memory
   * one after another, each at a multiple of 64 bytes.
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

  /** Whether the allocator of `fill` has been used. */
  get filled(): boolean {
    return this.#used !== 0;
  }

  /** Records that a handler of `method` uses the memory until the handler's call ends. */
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
    // All views become empty here, so that they do not show the later content of the memory.
    this.native.takeBlock(this.block);
    // A view of a detached buffer cannot be created. A view that was created before is empty now.
    this.#bytes ??= new Uint8Array();
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/** Adds to a message a private field that holds the lease of its memory. */
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

/** Depth to which `keep()` searches a request that an interceptor has changed for views of lent memory. */
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
 * Keeps the memory of a request beyond its call, and returns the request. Without `keep`, the large `bytes`
 * values of a request become empty when its handler has ended and the call has been answered. Memory that is
 * kept is released by `leaseOf(request).release()`, or when the values are garbage-collected. `keep` also
 * accepts one of the request's `bytes` values. A request that owns all its bytes, as small requests do, is
 * returned unchanged. Throws FAILED_PRECONDITION when the call has ended.
 */
export function keep<T extends object>(request: T): T {
  const lease = leaseIn(request);
  if (lease === undefined) return request;
  if (lease.released)
    throw new RpcError(
      Status.FAILED_PRECONDITION,
      'keep: the memory of this request has been released already; call keep(request) before its handler ends',
    );
  lease.kept = true;
  return request;
}

export function setLease(message: object, lease: BlockLease): void {
  Leased.set(message, lease);
}

/** Returns what `leaseOf` returns, but with the internal type. */
export function blockLeaseOf(message: unknown): BlockLease | undefined {
  return typeof message === 'object' && message !== null ? Leased.get(message) : undefined;
}

/**
 * Returns the lease of the memory that a received message's large `bytes` fields are views of. Returns
 * undefined when the message has no lease, because a small message owns all its bytes.
 */
export function leaseOf(message: object): Lease | undefined {
  // Untyped callers may pass a value that is not an object.
  return Object(message) === message ? Leased.get(message) : undefined;
}
