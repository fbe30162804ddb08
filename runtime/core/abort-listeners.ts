/**
 * Connects AbortSignals to the calls and to the waits for a connection that they cancel. An application may
 * pass one signal to a thousand calls, and Node warns of a leak above ten listeners. Therefore each signal
 * gets a single listener.
 */

/**
 * Runs once when the signal fires. It must not throw, because the signal's other entries are called
 * afterwards.
 */
export interface Abortable {
  onAbort(): void;
}

class AbortListener {
  /** Most signals belong to one call and need no set. */
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
    // The loop runs over a copy. Each entry leaves the set when it is called, and may remove other entries.
    // Entries that are added during the loop are not called.
    for (const one of [this.#one, ...(this.#others ?? [])])
      if (one !== undefined && (one === this.#one || this.#others?.has(one))) one.onAbort();
  }
}

/**
 * A signal is removed from the map when it has no listener any more. Stale entries would cost the garbage
 * collector more than everything else in this file.
 */
const listeners = new WeakMap<AbortSignal, AbortListener>();

/** Calls `onAbort` of `one` when `signal` fires. */
export function listen(signal: AbortSignal, one: Abortable): void {
  let listener = listeners.get(signal);
  if (listener === undefined) {
    listener = new AbortListener();
    // `addEventListener` may throw when the signal comes from another library.
    signal.addEventListener('abort', listener);
    listeners.set(signal, listener);
  }
  listener.add(one);
}

/** Undoes `listen`. Each call of `listen` needs one call of `unlisten`. */
export function unlisten(signal: AbortSignal, one: Abortable): void {
  const listener = listeners.get(signal);
  if (listener === undefined) return;
  listener.delete(one);
  if (!listener.empty) return;
  listeners.delete(signal);
  // Node keeps a signal of AbortSignal.timeout() or any() alive as long as the signal has a listener.
  signal.removeEventListener('abort', listener);
}
