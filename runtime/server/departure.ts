/**
 * The beginning of a server's shutdown. Its listeners are called, and the server goes on as before until the
 * promises that they return have settled. Such a promise may be the removal of the server from a registry.
 * Owned by a server, on its JS thread.
 */
import { guardedInRoot } from '../core/foreign.ts';
import { departureMs } from '../limits.ts';

const what = 'a listener of onShutdown';

export class Departure {
  /** True from the call of `begin` on. */
  begun = false;
  /** True once clients may be told that the server is shutting down. */
  over = false;
  /** Settles as the promise of `end` does. */
  readonly ended: Promise<void>;
  #settle!: (ended: Promise<void>) => void;
  readonly #listeners: (() => unknown)[] = [];

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Listeners that come after the beginning are called at once, and not awaited. */
  add(listener: () => unknown): void {
    if (this.begun) guardedInRoot(what, listener);
    else this.#listeners.push(listener);
  }

  /** Calls the listeners, then `end`: before it returns when none of them has returned a promise. */
  begin(graceMs: number, end: () => Promise<void>): void {
    this.begun = true;
    const awaited = this.#call();
    const leave = (): void => {
      if (this.over) return;
      this.over = true;
      this.#settle(end());
    };
    if (awaited.length === 0 || graceMs === 0) {
      leave();
      return;
    }
    const timer = setTimeout(leave, Math.min(graceMs, departureMs));
    void Promise.allSettled(awaited).then(() => {
      clearTimeout(timer);
      leave();
    });
  }

  #call(): Promise<unknown>[] {
    const awaited: Promise<unknown>[] = [];
    for (const listener of this.#listeners.splice(0))
      guardedInRoot(what, () => {
        const result = listener();
        if (result instanceof Promise) awaited.push(result);
        return result;
      });
    return awaited;
  }
}
