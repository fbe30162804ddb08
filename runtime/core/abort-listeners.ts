/**
 * Connects AbortSignals to what they cancel: calls, and waits for a connection. Each signal gets one listener
 * for all of them, since an application may pass one signal to a thousand calls, and Node warns of a leak
 * above ten listeners.
 */

/** Called once when the signal fires. Must not throw, because others are called after it. */
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
    // A copy, because each entry leaves when it is called and may remove others; entries added meanwhile are
    // not called.
    for (const one of [this.#one, ...(this.#others ?? [])])
      if (one !== undefined && (one === this.#one || this.#others?.has(one))) one.onAbort();
  }
}

/**
 * Contains only signals that are being listened to: a stale entry would cost the garbage collector more than
 * everything else.
 */
const listeners = new WeakMap<AbortSignal, AbortListener>();

/** Makes `signal` cancel `one`. */
export function listen(signal: AbortSignal, one: Abortable): void {
  let listener = listeners.get(signal);
  if (listener === undefined) {
    listener = new AbortListener();
    // The signal may come from another library, and throw.
    signal.addEventListener('abort', listener);
    listeners.set(signal, listener);
  }
  listener.add(one);
}

/** Undoes `listen`. Call it as often as `listen`. */
export function unlisten(signal: AbortSignal, one: Abortable): void {
  const listener = listeners.get(signal);
  if (listener === undefined) return;
  listener.delete(one);
  if (!listener.empty) return;
  listeners.delete(signal);
  // Node keeps a signal of AbortSignal.timeout() or any() alive as long as it has a listener.
  signal.removeEventListener('abort', listener);
}
