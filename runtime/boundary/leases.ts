/**
 * The memory of one context that the application uses directly: arena buffers that it allocates, its own
 * buffers that it registers, and the response sizes that it announces. A FabricContext owns this object and
 * uses it on its JS thread.
 */
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { BlockLease, type Lease } from '../core/lease.ts';
import { arenaBytes, aroundBytes, sealChunkBytes, sealTagBytes } from '../limits.ts';
import { type NativeContext, Use } from '../native/native.ts';
import { blockMemory } from './outgoing/block-stamps.ts';
import type { BulkMessages } from './outgoing/bulk.ts';

export class Leases {
  readonly #native: NativeContext;
  readonly #bulk: Pick<BulkMessages, 'register'>;
  /**
   * Method words whose response size native code already knows. The program has at most one for each
   * annotated method.
   */
  readonly #expecting = new Set<number>();

  constructor(native: NativeContext, bulk: Pick<BulkMessages, 'register'>) {
    this.#native = native;
    this.#bulk = bulk;
  }

  allocBuffer(bytes: number): Lease {
    const seals = Math.ceil(bytes / sealChunkBytes) * sealTagBytes;
    const block = this.#native.allocBlock(bytes + aroundBytes + seals, Use.application);
    if (block === 0) {
      const refusal = this.#native.refusal();
      const text =
        refusal === ''
          ? `allocBuffer: no room for ${bytes} bytes in the arena; give leases back with release(), or raise arenaBytes (default ${arenaBytes.default}) in configure()`
          : `allocBuffer: no memory for ${bytes} bytes: ${refusal}`;
      throw new RpcError(Status.RESOURCE_EXHAUSTED, text, { processed: 'no' });
    }
    return new BlockLease(this.#native, block, blockMemory(this.#native, block), 0, bytes);
  }

  registerBuffer(buffer: ArrayBuffer): void {
    const why = this.#bulk.register(buffer);
    if (why !== '')
      throw new RpcError(Status.RESOURCE_EXHAUSTED, `registerBuffer: ${why}`, { processed: 'no' });
  }

  /**
   * Makes the first request of a method bring a reply buffer. After that, native code learns the size from
   * the responses. `word` is the method word of the frame that brings the buffer. It is called for each call
   * of a method whose definition has the option.
   */
  expectResponse(word: number, bytes: number): void {
    if (this.#expecting.has(word)) return;
    this.#expecting.add(word);
    this.#native.expectResponse(word, Math.min(bytes, 0xffff_ffff));
  }

  /**
   * Returns the block of a lease that is to receive the response of a call. Throws when the lease cannot
   * receive a response.
   */
  blockOf(lease: BlockLease, path: string): number {
    const why = lease.released
      ? 'the lease was released before the call was sent'
      : 'the lease belongs to another fabric; get it with allocBuffer(bytes, channel)';
    if (lease.released || lease.native !== this.#native)
      throw new RpcError(Status.FAILED_PRECONDITION, `${path}: into: ${why}`, { processed: 'no' });
    return lease.block;
  }
}
