/**
 * Time as the load generator sees it. The real one here; tests have one that stands still until they say
 * otherwise. Used by load.ts.
 */

export interface Clock {
  /** Milliseconds with fractions, from any beginning. */
  now(): number;
  /**
   * Calls back once it is `at`, and never before the caller has returned. What it returns takes that back.
   */
  wakeAt(at: number, wake: () => void): () => void;
}

/**
 * Node's timers are a millisecond too late or more: what is nearer than this is waited for turn by turn of
 * the event loop.
 */
const timerMs = 2;

/** Longer than a timer takes: 24.8 days. Whoever wakes too early looks again. */
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
