/**
 * The streams of one session that wait for a slot or for memory. They wait in two queues, so that a stream
 * without memory does not delay a stream that needs only a slot. The stream table of a session owns this
 * object and uses it on its JS thread.
 */
import type { FabricContext } from '../boundary/fabric-context.ts';
import { ResourceQueue } from '../boundary/waiting/resource-queue.ts';

/** The functions of a stream that the queues need. */
export interface StalledStream {
  /** Runs when a slot or memory may be available again. */
  retry(): void;
}

export class StalledStreams {
  readonly #context: FabricContext;
  readonly #forSlots = new ResourceQueue<StalledStream>({ retry: (stream) => stream.retry() });
  readonly #forMemory = new ResourceQueue<StalledStream>({ retry: (stream) => stream.retry() });

  constructor(context: FabricContext) {
    this.#context = context;
  }

  /** Adds a stream that has found no slot of that kind for a part. */
  awaitSlot(stream: StalledStream, kind: 'slot' | 'callSlot'): void {
    this.#forSlots.add(stream, this.#context.waiters, kind);
  }

  /**
   * Adds a stream that has found no memory for the message of a part. Returns false, without adding the
   * stream, when no event would ever bring memory.
   */
  awaitMemory(stream: StalledStream): boolean {
    const { waiters, lacking } = this.#context;
    return this.#forMemory.add(stream, waiters, lacking === 'memory' ? 'sent' : lacking);
  }

  /** Records that the stream has sent a part, so that other streams come first. */
  moved(stream: StalledStream): void {
    this.#forSlots.moved(stream);
    this.#forMemory.moved(stream);
  }

  /** Tries waiting streams when a call slot has become free without an event that wakes the queue. */
  retrySlots(): void {
    this.#forSlots.retryAll();
  }

  /** Removes a stream that has ended. */
  delete(stream: StalledStream): void {
    this.#forSlots.delete(stream);
    this.#forMemory.delete(stream);
  }

  /** Clears both queues when the session has ended. */
  clear(): void {
    this.#forSlots.clear();
    this.#forMemory.clear();
  }
}
