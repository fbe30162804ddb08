/**
 * The streams of one session that wait for a slot or for memory. They wait in two queues, so that one which
 * lacks memory keeps no other one from a slot. Owned by the stream table of a session, a client's or a
 * server's, on its JS thread.
 */
import type { FabricContext } from '../boundary/fabric-context.ts';
import { ResourceQueue } from '../boundary/waiting/resource-queue.ts';

/** A stream, as far as it matters here. */
export interface StalledStream {
  /** There may be a slot, or memory, for what found none. */
  retry(): void;
}

export class StalledStreams {
  readonly #context: FabricContext;
  readonly #forSlots = new ResourceQueue<StalledStream>({ retry: (stream) => stream.retry() });
  readonly #forMemory = new ResourceQueue<StalledStream>({ retry: (stream) => stream.retry() });

  constructor(context: FabricContext) {
    this.#context = context;
  }

  /** The stream found no slot of that kind for a part. */
  awaitSlot(stream: StalledStream, kind: 'slot' | 'callSlot'): void {
    this.#forSlots.add(stream, this.#context.waiters, kind);
  }

  /**
   * The stream found no memory for the message of a part. Returns false when none will come by itself; then
   * it does not wait.
   */
  awaitMemory(stream: StalledStream): boolean {
    const { waiters, lacking } = this.#context;
    return this.#forMemory.add(stream, waiters, lacking === 'memory' ? 'sent' : lacking);
  }

  /** The stream has sent a part, so it lets others go first. */
  moved(stream: StalledStream): void {
    this.#forSlots.moved(stream);
    this.#forMemory.moved(stream);
  }

  /** A call slot has come back without an event that wakes the queue. */
  retrySlots(): void {
    this.#forSlots.retryAll();
  }

  /** The stream is over. */
  delete(stream: StalledStream): void {
    this.#forSlots.delete(stream);
    this.#forMemory.delete(stream);
  }

  /** The session is down. */
  clear(): void {
    this.#forSlots.clear();
    this.#forMemory.clear();
  }
}
