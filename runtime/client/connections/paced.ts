/**
 * Passes lists of addresses on, and combines lists that come too fast. Checking a list of 10,000 servers
 * takes tens of milliseconds, and a registry may send a thousand changes a second. The first list is passed
 * on at once. Then a pause follows whose length depends on the number of servers, and after the pause only
 * the newest list is passed on. Lists of a few servers have no pause. resolution.ts and the resolvers of
 * registries use this file.
 */
import { clockMs } from '../../clock.ts';
import { inRoot } from '../../core/scopes.ts';
import { listedMax, listPauseMs } from './limits.ts';

/** Shorter pauses are left out, because a timer takes at least this long. */
const pauseMinMs = 1;

export class Paced<List> {
  readonly #onList: (list: List) => number;
  readonly #onFault: (fault: unknown) => void;
  #newest: (() => List) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #nextMs = Number.NEGATIVE_INFINITY;

  /**
   * `onList` returns the number of servers in the list. `onFault` gets the error of a list that could not be
   * made or used. The pause after such a list is the longest, because the list may be a long one.
   */
  constructor(onList: (list: List) => number, onFault: (fault: unknown) => void) {
    this.#onList = onList;
    this.#onFault = onFault;
  }

  /** Passes the list of `make` on, now or at the end of a pause. `make` runs at that time. */
  changed(make: () => List): void {
    this.#newest = make;
    if (this.#timer !== undefined) return;
    const waitMs = this.#nextMs - clockMs();
    if (waitMs < pauseMinMs) this.#pass();
    else this.#timer = inRoot(() => setTimeout(this.flush, waitMs).unref());
  }

  /** Passes a list on that waits for the end of a pause. */
  readonly flush = (): void => {
    if (this.#timer === undefined) return;
    this.close();
    this.#pass();
  };

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #pass(): void {
    const make = this.#newest!;
    this.#newest = undefined;
    let count = listedMax;
    try {
      count = this.#onList(make());
    } catch (fault) {
      this.#onFault(fault);
    }
    this.#nextMs = clockMs() + count * listPauseMs;
  }
}
