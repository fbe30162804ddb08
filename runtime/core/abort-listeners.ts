/**
 * What an AbortSignal gives up: calls, and those who wait for a connection. It has one listener for all of
 * them, since an application may pass one signal of its own to a thousand calls, and Node takes more than ten
 * listeners for a leak and warns.
 */

/** Told once when the signal fires. Must not throw: the others are told after it. */
export interface Abortable {
  onAbort(): void;
}

class AbortListener {
  /** Most signals are of one call and need no set. */
  #one: Abortable | undefined;
  #others: Set<Abortable> | undefined;

  get empty(): boolean {
    return this.#one === undefined && (this.#others === undefined || this.#others.size === 0);
  }

  add(one: Abortable): void {
    if (this.#one === undefined) this.#one = one;
    else {
      this.#others ??= new Set();
      this.#others.add(one);
    }
  }

  delete(one: Abortable): void {
    if (this.#one === one) this.#one = undefined;
    else this.#others?.delete(one);
  }

  handleEvent(): void {
    // A copy: each leaves when it is told, may take others along, and what comes meanwhile is not told.
    for (const one of [this.#one, ...(this.#others ?? [])])
      if (one !== undefined && (one === this.#one || this.#others?.has(one))) one.onAbort();
  }
}

/**
 * Of the signals that something listens to just now: an entry that waits for the collector costs it more than
 * all the rest.
 */
const listeners = new WeakMap<AbortSignal, AbortListener>();

/** From now on `one` hears of `signal`. */
export function listen(signal: AbortSignal, one: Abortable): void {
  let listener = listeners.get(signal);
  if (listener === undefined) {
    listener = new AbortListener();
    // It may be another library's, and throw.
    signal.addEventListener('abort', listener);
    listeners.set(signal, listener);
  }
  listener.add(one);
}

/** It does not any more. As often as `listen`. */
export function unlisten(signal: AbortSignal, one: Abortable): void {
  const listener = listeners.get(signal);
  if (listener === undefined) return;
  listener.delete(one);
  if (!listener.empty) return;
  listeners.delete(signal);
  // Node keeps a signal of AbortSignal.timeout() or any() alive as long as somebody listens to it.
  signal.removeEventListener('abort', listener);
}
