/**
 * The lease of a request whose memory comes back with its call (option `requestMemory`): when nobody reads it
 * any more, the handler that an interceptor no longer waits for included. Owned by a ServerCall, on its JS
 * thread.
 */
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import type { BlockLease } from '../core/lease.ts';
import type { StaleRequests } from './stale-requests.ts';

export class RequestLease {
  #lease: BlockLease | undefined;
  #weak: WeakRef<BlockLease> | undefined;
  /** Undefined when it is not watched. */
  #request: object | undefined;
  readonly #stale: StaleRequests;
  /** Handlers within interceptors that are not done: next() may be called more than once. */
  #readers = 0;
  #over = false;

  constructor(lease: BlockLease, request: object, stale: StaleRequests) {
    this.#lease = lease;
    this.#stale = stale;
    if (stale.left > 0) this.#request = request;
  }

  /** A handler within interceptors begins. Throws an RpcError when the memory may be another's already. */
  enter(path: string): void {
    if (this.#over) {
      const text = `${path}: an interceptor called next() when it had answered already, and the memory of the request had been given back (option requestMemory)`;
      throw new RpcError(Status.FAILED_PRECONDITION, text);
    }
    ++this.#readers;
  }

  leave(): void {
    --this.#readers;
    this.#end();
  }

  /** The call has been answered, or nobody waits for it, and what was called for it is done. */
  over(): void {
    this.#over = true;
    this.#end();
  }

  /**
   * The answer waits for memory of the arena, which may be this. Unless the answer is made of it, it can be
   * collected from now on.
   */
  yield(): void {
    if (this.#lease === undefined) return;
    this.#weak = new WeakRef(this.#lease);
    this.#lease = undefined;
    this.#request = undefined;
  }

  #end(): void {
    if (!this.#over || this.#readers !== 0) return;
    const lease = this.#lease ?? this.#weak?.deref();
    // The application has said that it keeps the request.
    if (lease === undefined || lease.kept) return;
    lease.release();
    if (this.#request !== undefined) this.#stale.watch(this.#request);
    this.#request = undefined;
  }
}
