/**
 * Leases: registered memory that the application holds. It comes from `allocBuffer`, or with a large message
 * whose `bytes` fields are views of it. Used on the JS thread of its context.
 *
 * The rule: memory that was given back belongs to someone else, and no view of it is left: its ArrayBuffer is
 * detached.
 */
import { imagePlace } from '../codec/memory/image.ts';
import { Itself } from '../codec/memory/itself.ts';
import { lentLease, markLent } from '../codec/memory/lent.ts';
import type { CopyOut } from '../codec/memory/source.ts';
import type { NativeContext } from '../native/native.ts';
import { RpcError } from './errors/rpc-error.ts';
import { Status } from './errors/status.ts';

export interface Lease {
  /**
   * The memory. Empty once it was released or lost: its ArrayBuffer is detached then, with all views of it.
   */
  readonly bytes: Uint8Array;
  /**
   * Whether `release()` has been called, or the lease was lost as `into` of a call (see the guide, "Deadlines
   * and cancelling").
   */
  readonly released: boolean;
  /**
   * Gives the memory back. Calls after the first do nothing. What is never released returns when it is
   * collected.
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
  /** Of a request: the application wants it beyond its call. */
  kept = false;
  /** A call brings its response here. */
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

  /**
   * For a response that came small: its `bytes` values are copied into this memory, one behind the other,
   * each on 64 bytes.
   */
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

  /** A handler of this method has it until its call is over. */
  lendTo(method: string): void {
    markLent(this.#buffer, this, method);
  }

  /** What it can take in all. */
  get capacity(): number {
    return this.#buffer.byteLength;
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    // All views of it are empty from now on, so none of them shows what the memory holds next.
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

/** How deep `keep()` looks for views of lent memory in what an interceptor has made of a request. */
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
 * of a request are empty once its handler is done and the call has been answered. The memory then comes back
 * when `leaseOf(request)` is released, or when nobody has the values any more and they are collected. Takes a
 * value of the request, too. A request that owns all its bytes, as small ones do, needs nothing, and is
 * returned as it is. Throws FAILED_PRECONDITION when the call is over.
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

/** `leaseOf`, of a message of ours. */
export function blockLeaseOf(message: unknown): BlockLease | undefined {
  return typeof message === 'object' && message !== null ? Leased.get(message) : undefined;
}

/**
 * The lease of the memory that a received message's large `bytes` fields are views of; undefined when it has
 * none (the message was small, and owns all its bytes).
 */
export function leaseOf(message: object): Lease | undefined {
  // Callers without types may ask for what no message is.
  return Object(message) === message ? Leased.get(message) : undefined;
}
