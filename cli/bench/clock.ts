/**
 * The clock of the load generator. This is the real one; tests have one that stands still until they move it.
 * Used by load.ts.
 */

export interface Clock {
  /** Milliseconds with fractions, since an arbitrary time. */
  now(): number;
  /**
   * Calls `wake` at the time `at`, never before the caller has returned. Returns a function that cancels it.
   */
  wakeAt(at: number, wake: () => void): () => void;
}

/**
 * Node's timers are late by a millisecond or more: a shorter wait checks the time in each event-loop
 * iteration.
 */
const timerMs = 2;

/** Limit of Node's timers: 24.8 days. A longer wait takes several timers, one after the other. */
const timerMaxMs = 2 ** 31 - 1;

export const realClock: Clock = {
  now: () => performance.now(),
  wakeAt(at, wake) {
    let timer: NodeJS.Timeout | undefined;
    let turn: NodeJS.Immediate | undefined;
    const wait = (): void => {
      const leftMs = at - performance.now();
      if (leftMs > timerMs) timer = setTimeout(look, Math.min(leftMs - timerMs, timerMaxMs));
      else turn = setImmediate(look);
    };
    const look = (): void => {
      if (performance.now() < at) wait();
      else wake();
    };
    wait();
    return () => {
      clearTimeout(timer);
      clearImmediate(turn);
    };
  },
};
