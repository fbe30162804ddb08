/**
 * Messages on their way into a stream: pushed by whoever has one, taken by the stream as fast as its other
 * end reads, or taken back before that. Used by both ends of reverse calls.
 */

/** What is counted of a message: all that may be large. */
export interface Queued {
  readonly message?: Uint8Array | undefined;
  readonly metadata?: Uint8Array | undefined;
}

function bytesOf({ message, metadata }: Queued): number {
  return (message?.byteLength ?? 0) + (metadata?.byteLength ?? 0);
}

export class MessageQueue<T extends Queued> implements AsyncIterableIterator<T> {
  /** In order. */
  readonly #messages = new Set<T>();
  readonly #waiting: ((result: IteratorResult<T>) => void)[] = [];
  readonly #drained: (() => void)[] = [];
  #bytes = 0;
  #ended = false;

  /** Messages that have not been taken. */
  get size(): number {
    return this.#messages.size;
  }

  /** Of those. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The stream takes no more. */
  get ended(): boolean {
    return this.#ended;
  }

  push(message: T): void {
    if (this.#ended) return;
    const first = this.#waiting.shift();
    if (first !== undefined) {
      first({ value: message, done: false });
      return;
    }
    this.#messages.add(message);
    this.#bytes += bytesOf(message);
  }

  /** Takes a message back. False: it has been taken. */
  remove(message: T): boolean {
    if (!this.#messages.delete(message)) return false;
    this.#bytes -= bytesOf(message);
    this.#tellDrained();
    return true;
  }

  /** Nothing more comes; what is here is still taken. */
  end(): void {
    this.#ended = true;
    for (const resolve of this.#waiting.splice(0)) resolve({ value: undefined, done: true });
    for (const resolve of this.#drained.splice(0)) resolve();
  }

  /** Resolves when every message has been taken. */
  drained(): Promise<void> {
    if (this.#messages.size === 0 || this.#ended) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  next(): Promise<IteratorResult<T>> {
    for (const message of this.#messages) {
      this.remove(message);
      return Promise.resolve({ value: message, done: false });
    }
    if (this.#ended) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  return(): Promise<IteratorResult<T>> {
    this.#messages.clear();
    this.#bytes = 0;
    this.end();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #tellDrained(): void {
    if (this.#messages.size === 0) for (const resolve of this.#drained.splice(0)) resolve();
  }
}
