/**
 * Memory windows give one peer rights to a part of a region. The rights end when they are invalidated.
 */
import type { NativeVerbsDevice } from '../native/verbs-device.ts';
import { Resource } from './resource.ts';

/** A memory window of type 2 (`struct ibv_mw`). See ibv_alloc_mw(3). */
export interface MemoryWindow extends Disposable {
  readonly name: string;
  /** The number that `SendBatch.bindMw` takes. */
  readonly number: number;
  /**
   * The key for the peer, or 0 before the first `bindMw`. Each `bindMw` changes it when it is posted. The
   * rights begin when the bind is carried out, which is before any later message of its queue pair. They end
   * when a `localInv` has completed, when a message that invalidates the key has been received, or when the
   * queue pair ends.
   */
  readonly rkey: number;
  readonly closed: boolean;
  /**
   * Closes the window and ends its rights (ibv_dealloc_mw(3)). A posted bind keeps the window open until the
   * bind has completed.
   */
  close(): void;
}

export class OpenMemoryWindow extends Resource implements MemoryWindow {
  readonly #native: NativeVerbsDevice;
  readonly #number: number;

  constructor(native: NativeVerbsDevice, device: string, number: number) {
    super(`memory window ${number} of ${device}`);
    this.#native = native;
    this.#number = number;
  }
  get number(): number {
    this.check();
    return this.#number;
  }
  get rkey(): number {
    this.check();
    return this.#native.mwRkey(this.#number);
  }
  protected override release(): void {
    this.#native.closeMw(this.#number);
  }
}
