/** Memory windows: rights for one peer to a part of a region, which end when they are invalidated. */
import type { NativeVerbsDevice } from '../native/verbs-device.ts';
import { Resource } from './resource.ts';

/** A memory window of type 2 (`struct ibv_mw`). See ibv_alloc_mw(3). */
export interface MemoryWindow extends Disposable {
  readonly name: string;
  /** For `SendBatch.bindMw`. */
  readonly number: number;
  /**
   * The key for the peer, which each `bindMw` changes when it is posted; 0 before the first one. The rights
   * begin when the bind is carried out, which is before any later message of its queue pair. They end when a
   * `localInv` has completed, when a message that invalidates the key has been received, or with the queue
   * pair.
   */
  readonly rkey: number;
  readonly closed: boolean;
  /** Closes it, with its rights (ibv_dealloc_mw(3)). A posted bind keeps it until it has completed. */
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
