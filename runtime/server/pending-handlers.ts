/**
 * Continues a call when the promise of its handler has settled. The two callback functions are reused for
 * later calls, because an async function per call cost 400 bytes and an unused promise. A ServerSession owns
 * this object and uses it on its JS thread.
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

  /**
   * Calls exactly one of the two functions when `promise` has settled. It never calls them before it returns.
   */
  add(call: ServerCall, promise: Promise<unknown>): void {
    const pending = this.#free ?? new Pending(this);
    this.#free = pending.nextFree;
    pending.nextFree = undefined;
    pending.call = call;
    try {
      // A `then` of the application is called in a microtask, as with `await`, and may throw there.
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
