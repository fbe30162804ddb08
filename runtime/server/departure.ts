/**
 * The beginning of a server's shutdown. The server calls its listeners, and continues to serve until the
 * promises that they return have settled. Such a promise may stand for the removal of the server from a
 * registry. A server owns this object on its JS thread, or a worker group owns it on the main thread.
 */
import { guardedInRoot } from '../core/foreign.ts';
import { inRoot } from '../core/scopes.ts';
import { departureMs } from '../limits.ts';

const what = 'a listener of onShutdown';

export class Departure {
  /** True from the call of `begin` on. */
  begun = false;
  /** True when clients may be told that the server is shutting down. */
  over = false;
  /** Settles as the promise of `end` does. */
  readonly ended: Promise<void>;
  #settle!: (ended: Promise<void>) => void;
  readonly #listeners: (() => unknown)[] = [];

  constructor() {
    // In Node 20 and 22 a promise keeps the async stores of the caller that created it alive, in this case
    // for the whole life of the server.
    const pending = () =>
      new Promise<void>((resolve) => {
        this.#settle = resolve;
      });
    this.ended = inRoot(pending);
  }

  /** Listeners that are added after the beginning are called at once, and their promises are not awaited. */
  add(listener: () => unknown): void {
    if (this.begun) guardedInRoot(what, listener);
    else this.#listeners.push(listener);
  }

  /**
   * Calls the listeners, and then `end`. When no listener has returned a promise, `end` is called before this
   * function returns.
   */
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
