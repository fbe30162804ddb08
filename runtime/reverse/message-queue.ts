/** Messages on their way into a stream: pushed by whoever has one, taken by the stream as fast as its other end reads. Used by both ends of reverse calls. */

export class MessageQueue<T> implements AsyncIterableIterator<T> {
  readonly #messages: T[] = [];
  readonly #waiting: ((result: IteratorResult<T>) => void)[] = [];
  readonly #drained: (() => void)[] = [];
  #ended = false;

  /** Messages that have not been taken. */
  get size(): number {
    return this.#messages.length;
  }

  /** The stream takes no more. */
  get ended(): boolean {
    return this.#ended;
  }

  push(message: T): void {
    if (this.#ended) return;
    const first = this.#waiting.shift();
    if (first === undefined) this.#messages.push(message);
    else first({ value: message, done: false });
  }

  /** Nothing more comes; what is here is still taken. */
  end(): void {
    this.#ended = true;
    for (const resolve of this.#waiting.splice(0)) resolve({ value: undefined, done: true });
    for (const resolve of this.#drained.splice(0)) resolve();
  }

  /** Resolves when every message has been taken. */
  drained(): Promise<void> {
    if (this.#messages.length === 0 || this.#ended) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  next(): Promise<IteratorResult<T>> {
    const message = this.#messages.shift();
    if (message !== undefined) {
      if (this.#messages.length === 0) for (const resolve of this.#drained.splice(0)) resolve();
      return Promise.resolve({ value: message, done: false });
    }
    if (this.#ended) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  return(): Promise<IteratorResult<T>> {
    this.#messages.length = 0;
    this.end();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
