/**
 * The clock of the load generator. This is the real clock; tests have a clock that stands still until they
 * move it. load.ts uses this file.
 */

export interface Clock {
  /** Returns milliseconds with fractions, counted from an arbitrary time. */
  now(): number;
  /**
   * Calls `wake` at the time `at`, and never before the caller has returned. Returns a function that cancels
   * the call.
   */
  wakeAt(at: number, wake: () => void): () => void;
}

/**
 * Node's timers are late by a millisecond or more. For a shorter wait than this, the clock checks the time in
 * each event-loop iteration.
 */
const timerMs = 2;

/**
 * Maximum of Node's timers in milliseconds, which is 24.8 days. A longer wait takes several timers, one after
 * the other.
 */
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
