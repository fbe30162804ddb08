/**
 * Reads messages from an application's iterable and passes them to a stream's writer, as fast as the writer
 * accepts them. Both ends use it: a client for requests, a handler for responses. Errors of the application
 * are reported to the owner, never as unhandled rejections.
 */
import type { Scope } from '../core/scopes.ts';
import type { StreamWriter } from './stream-writer.ts';

export interface ProducerOwner {
  /** Runs when the iterable has thrown. */
  onSourceError(error: unknown): void;
  /** Runs when a message could not be encoded. */
  onMessageFault(error: unknown): void;
  /** The iterable has thrown after it was stopped. */
  onLateError?(error: unknown): void;
  /** A message is about to be written. */
  onMessage?(message: unknown): void;
}

type AnyIterator = Iterator<unknown> | AsyncIterator<unknown>;

/** Returns the iterator of a synchronous or asynchronous iterable, or undefined for anything else. */
function iteratorOf(iterable: unknown): { iterator: AnyIterator; sync: boolean } | undefined {
  if (typeof iterable !== 'object' || iterable === null) return undefined;
  const { [Symbol.asyncIterator]: async, [Symbol.iterator]: sync } = iterable as Partial<
    AsyncIterable<unknown> & Iterable<unknown>
  >;
  if (typeof async === 'function') return { iterator: async.call(iterable), sync: false };
  if (typeof sync === 'function') return { iterator: sync.call(iterable), sync: true };
  return undefined;
}

export class Producer {
  readonly #owner: ProducerOwner;
  readonly #writer: StreamWriter;
  readonly #scope: Scope;
  #iterator: AnyIterator | undefined;
  #sync = false;

  /** `scope` is the async context in which the iterable runs, which is the context of its creator. */
  constructor(owner: ProducerOwner, writer: StreamWriter, scope: Scope) {
    this.#owner = owner;
    this.#writer = writer;
    this.#scope = scope;
  }

  /** Begins to read. `what` names the value in the error when it is not iterable. */
  start(iterable: unknown, what: string): void {
    try {
      const found = this.#scope.run(iteratorOf, undefined, iterable);
      if (found === undefined) throw new TypeError(`${what} is not iterable`);
      this.#iterator = found.iterator;
      this.#sync = found.sync;
    } catch (error) {
      this.#owner.onSourceError(error);
      return;
    }
    this.resume();
  }

  /** Continues reading, because the writer accepts messages again. */
  resume(): void {
    const iterator = this.#iterator;
    if (iterator === undefined) return;
    // The continuations of the iterator's promises run in that context, too.
    this.#scope.run(this.#sync ? this.#runSync : this.#ask, this, iterator);
  }

  /**
   * Stops reading, and calls `return()` of the iterator. The returned promise resolves when the iterator has
   * finished. A generator that awaits something finishes later.
   */
  stop(): Promise<unknown> | undefined {
    const iterator = this.#iterator;
    if (iterator === undefined) return undefined;
    this.#iterator = undefined;
    try {
      const left: unknown = iterator.return && this.#scope.run(iterator.return as () => unknown, iterator);
      if (!this.#sync) return Promise.resolve(left).catch(this.#onLateError);
    } catch (error) {
      // The stream has already ended, and its reason matters more.
      this.#onLateError(error);
    }
    return undefined;
  }

  #runSync(iterator: Iterator<unknown>): void {
    for (;;) {
      let result: IteratorResult<unknown>;
      try {
        result = iterator.next();
      } catch (error) {
        this.#failed(error);
        return;
      }
      if (this.#iterator === undefined) {
        // The producer was stopped while `next()` was running, when `return()` could not be called.
        this.#iterator = iterator;
        this.stop();
        return;
      }
      if (!this.#give(result)) return;
    }
  }

  #ask(iterator: AsyncIterator<unknown>): void {
    let promise: Promise<IteratorResult<unknown>>;
    try {
      promise = Promise.resolve(iterator.next());
    } catch (error) {
      this.#failed(error);
      return;
    }
    promise.then(this.#onNext, this.#onError);
  }

  readonly #onNext = (result: IteratorResult<unknown>): void => {
    const iterator = this.#iterator;
    if (iterator !== undefined && this.#give(result)) this.#ask(iterator as AsyncIterator<unknown>);
  };

  readonly #onError = (error: unknown): void => this.#failed(error);

  readonly #onLateError = (error: unknown): void => this.#owner.onLateError?.(error);

  /** Returns whether the next message may be read now. */
  #give(result: IteratorResult<unknown>): boolean {
    if (result.done === true) {
      this.#iterator = undefined;
      this.#writer.end();
      return false;
    }
    try {
      this.#owner.onMessage?.(result.value);
      return this.#writer.write(result.value) && this.#iterator !== undefined;
    } catch (error) {
      this.stop();
      this.#owner.onMessageFault(error);
      return false;
    }
  }

  #failed(error: unknown): void {
    if (this.#iterator === undefined) {
      this.#onLateError(error);
      return;
    }
    this.#iterator = undefined;
    this.#owner.onSourceError(error);
  }
}
