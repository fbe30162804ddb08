/**
 * Messages as interceptors see them: iterables from a caller, a handler or the network. An interceptor may
 * call `next` several times with the same request. Requests that can be read again are then read again; other
 * requests throw instead of being empty the second time. Clients and servers use this file.
 */

type Iterables = AsyncIterable<unknown> | Iterable<unknown>;

function isIterable(messages: unknown): messages is Iterables {
  return (
    typeof messages === 'object' &&
    messages !== null &&
    (Symbol.asyncIterator in messages || Symbol.iterator in messages)
  );
}

/**
 * Converts any iterable to an asynchronous iterable. Throws a TypeError that begins with `what` when the
 * value is not iterable.
 */
export function asyncIterable(messages: unknown, what: string): AsyncIterable<unknown> {
  if (!isIterable(messages)) throw new TypeError(`${what} is not iterable`);
  return Symbol.asyncIterator in messages ? messages : each(messages);
}

async function* each(messages: Iterable<unknown>): AsyncGenerator<unknown> {
  yield* messages;
}

/**
 * Returns an iterable of the single `message`, which may be a promise. The iterable can be read any number of
 * times.
 */
export function iterableOfOne(message: unknown): AsyncIterable<unknown> {
  // An interceptor may drop the iterable. Without this line, a rejection of the promise would be unhandled in
  // that case.
  Promise.resolve(message).catch(() => undefined);
  return { [Symbol.asyncIterator]: () => one(message) };
}

async function* one(message: unknown): AsyncGenerator<unknown> {
  yield await message;
}

/**
 * Returns the single message of a stream. The stream is read to its end, so that all interceptors see the
 * end. Throws the error made by `none` when the stream is empty.
 */
export async function onlyMessage(messages: AsyncIterable<unknown>, none: () => Error): Promise<unknown> {
  let only: unknown = none;
  for await (const message of messages) only = message;
  if (only === none) throw none();
  return only;
}

/**
 * The requests of a call. An array, a set and the like can be read again. An asynchronous iterable counts as
 * readable only once, because some asynchronous iterables (Node's streams) are silently empty the second
 * time.
 */
export class RequestMessages implements AsyncIterable<unknown> {
  readonly #path: string;
  readonly #given: Iterables;
  #begun = false;

  constructor(path: string, given: unknown) {
    if (!isIterable(given)) throw new TypeError(`${path}: the requests are not iterable`);
    this.#path = path;
    this.#given = given;
  }

  /** Throws a TypeError when the requests have been read and cannot be read again. */
  check(): void {
    if (this.#begun)
      throw new TypeError(
        `${this.#path}: an interceptor called next() again, but the requests of this call can be read only once: give it others, next({ ...request, message })`,
      );
  }

  [Symbol.asyncIterator](): AsyncIterator<unknown> {
    this.check();
    if (Symbol.asyncIterator in this.#given) {
      this.#begun = true;
      return this.#given[Symbol.asyncIterator]();
    }
    const iterator = this.#given[Symbol.iterator]();
    this.#begun = iterator === (this.#given as unknown);
    return each({ [Symbol.iterator]: () => iterator });
  }
}
