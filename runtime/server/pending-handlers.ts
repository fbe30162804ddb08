/**
 * What goes on when the promise of a handler has settled. The two functions for that are kept for the next
 * call: an async function for each one took 400 bytes of it, and a promise that nobody looks at. Owned by a
 * ServerSession, on its JS thread.
 */
import type { ServerCall } from './server-call.ts';

export type OnResponse = (call: ServerCall, response: unknown) => void;
export type OnError = (call: ServerCall, error: unknown) => void;

const then = Promise.prototype.then;

class Pending {
  call: ServerCall | undefined;
  nextFree: Pending | undefined;
  readonly onResponse: (response: unknown) => void;
  readonly onError: (error: unknown) => void;

  constructor(owner: PendingHandlers) {
    this.onResponse = (response) => owner.onResponse(owner.ended(this), response);
    this.onError = (error) => owner.onError(owner.ended(this), error);
  }
}

export class PendingHandlers {
  readonly onResponse: OnResponse;
  readonly onError: OnError;
  #free: Pending | undefined;

  constructor(onResponse: OnResponse, onError: OnError) {
    this.onResponse = onResponse;
    this.onError = onError;
  }

  /** Exactly one of the two functions hears of `promise`, later. */
  add(call: ServerCall, promise: Promise<unknown>): void {
    const pending = this.#free ?? new Pending(this);
    this.#free = pending.nextFree;
    pending.nextFree = undefined;
    pending.call = call;
    try {
      // As `await` has it: a `then` of the application's own is called in a microtask, where it may throw.
      void then.call(Promise.resolve(promise), pending.onResponse, pending.onError);
    } catch (error) {
      void Promise.reject(error).catch(pending.onError);
    }
  }

  ended(pending: Pending): ServerCall {
    const { call } = pending;
    if (call === undefined) throw new Error('a promise has settled twice');
    pending.call = undefined;
    pending.nextFree = this.#free;
    this.#free = pending;
    return call;
  }
}
