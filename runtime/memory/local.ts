/**
 * Memory of this side that operations read into and write from. Either the application has registered it
 * (`alloc`), or its bytes are copied through registered slots. A link owns this object and uses it on its JS
 * thread.
 */
import { Access } from '../verbs/constants.ts';
import type { MemoryRegion } from '../verbs/memory-region.ts';
import { stagingSlots } from './limits.ts';
import type { LocalMemory } from './memory-type.ts';
import type { MemoryQueue } from './queue.ts';

/** A part of registered memory. */
export interface Place {
  readonly region: MemoryRegion;
  readonly offset: number;
}

export class Local {
  readonly #queue: MemoryQueue;
  readonly #regions = new Map<ArrayBufferLike, MemoryRegion>();
  readonly #own = new WeakSet<ArrayBufferLike>();
  #staging: MemoryRegion | undefined;
  readonly #free: number[] = [];

  constructor(queue: MemoryQueue) {
    this.#queue = queue;
  }

  alloc(byteLength: number): LocalMemory {
    const { pd } = this.#queue;
    const region = pd.regMr(pd.allocBuffer(byteLength), Access.localWrite);
    const { buffer } = region.bytes;
    this.#regions.set(buffer, region);
    this.owns(buffer);
    const close = (): void => {
      this.#regions.delete(buffer);
      region.close();
    };
    return { bytes: region.bytes, close, [Symbol.dispose]: close };
  }

  /** Records memory that was allocated on the device of this queue pair. */
  owns(buffer: ArrayBufferLike): void {
    this.#own.add(buffer);
  }
  isOwn(buffer: ArrayBufferLike): boolean {
    return this.#own.has(buffer);
  }

  /** Returns where these bytes are registered, or undefined when they must be copied. */
  find(bytes: Uint8Array): Place | undefined {
    const region = this.#regions.get(bytes.buffer);
    return region && { region, offset: bytes.byteOffset };
  }

  /**
   * READs of an iWARP device give the peer a key to the memory that they read into. Therefore this memory
   * must not be memory of the application.
   */
  get readsInPlace(): boolean {
    return !this.#queue.device.capabilities.readsLandInStaging;
  }

  /** Takes a slot to copy through. Returns undefined when all slots are in use. */
  take(): Place | undefined {
    const { count, bytes } = stagingSlots;
    if (this.#staging === undefined) {
      const { pd } = this.#queue;
      const forReads = this.readsInPlace ? 0 : Access.remoteWrite;
      this.#staging = pd.regMr(pd.allocBuffer(count * bytes), Access.localWrite | forReads);
      for (let i = 0; i < count; ++i) this.#free.push(i * bytes);
    }
    const offset = this.#free.pop();
    return offset === undefined ? undefined : { region: this.#staging, offset };
  }
  giveBack({ offset }: Place): void {
    this.#free.push(offset);
  }

  close(): void {
    for (const region of this.#regions.values()) region.close();
    this.#regions.clear();
    this.#staging?.close();
  }
}
