/**
 * The lease of a request whose memory is released at the end of its call (option `requestMemory`). The call
 * ends when no function reads the request any more. This includes handlers for which an interceptor has
 * stopped waiting. A ServerCall owns this object and uses it on its JS thread.
 */
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import type { BlockLease } from '../core/lease.ts';
import type { StaleRequests } from './stale-requests.ts';

export class RequestLease {
  #lease: BlockLease | undefined;
  #weak: WeakRef<BlockLease> | undefined;
  /** The request, or undefined when reads after the call are not watched. */
  #request: object | undefined;
  readonly #stale: StaleRequests;
  /**
   * Number of running handlers inside interceptors. There may be several, because an interceptor may call
   * next() more than once.
   */
  #readers = 0;
  #over = false;

  constructor(lease: BlockLease, request: object, stale: StaleRequests) {
    this.#lease = lease;
    this.#stale = stale;
    if (stale.left > 0) this.#request = request;
  }

  /**
   * Runs when a handler inside interceptors begins. Throws an RpcError when the memory has been released and
   * other code may use it.
   */
  enter(path: string): void {
    if (this.#over) {
      const text = `${path}: an interceptor called next() when it had answered already, and the memory of the request had been released (option requestMemory)`;
      throw new RpcError(Status.FAILED_PRECONDITION, text);
    }
    ++this.#readers;
  }

  leave(): void {
    --this.#readers;
    this.#end();
  }

  /** Runs when the call has been answered or abandoned, and all its functions have finished. */
  over(): void {
    this.#over = true;
    this.#end();
  }

  /**
   * Runs when the response waits for arena memory. This lease itself may hold the missing memory. From now on
   * the garbage collector can free the request, unless the response refers to it.
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
    // When `kept` is true, the application keeps the memory of the request.
    if (lease === undefined || lease.kept) return;
    lease.release();
    if (this.#request !== undefined) this.#stale.watch(this.#request);
    this.#request = undefined;
  }
}
