/**
 * Simulates time, which stands still until everything waits, and a server in that time, which serves one call
 * after another. The tests of `rdma-rpc bench` use it.
 */
import type { Clock } from '../../../cli/bench/clock.ts';
import type { End, MakeCall } from '../../../cli/bench/load.ts';

interface Waiting {
  readonly at: number;
  readonly wake: () => void;
}

export class VirtualClock implements Clock {
  #now = 1000;
  readonly #waiting: Waiting[] = [];

  now(): number {
    return this.#now;
  }

  wakeAt(at: number, wake: () => void): () => void {
    const waiting = { at, wake };
    // The waiters are sorted by time, and a new waiter goes behind those with the same time.
    let i = this.#waiting.length;
    while (i > 0 && this.#waiting[i - 1]!.at > at) --i;
    this.#waiting.splice(i, 0, waiting);
    return () => {
      const found = this.#waiting.indexOf(waiting);
      if (found >= 0) this.#waiting.splice(found, 1);
    };
  }

  /** Advances the time until no waiter is left. */
  async run<T>(result: Promise<T>): Promise<T> {
    let over = false;
    void result.finally(() => {
      over = true;
    });
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (over) return await result;
      const next = this.#waiting.shift();
      if (next === undefined) throw new Error('everybody waits for something that never comes');
      this.#now = Math.max(this.#now, next.at);
      next.wake();
    }
  }
}

/**
 * Answers each call `serviceMs` after accepting it, one at a time. From `stopMs` on it accepts no call for
 * `stoppedMs`.
 */
export function oneByOne(
  clock: Clock,
  serviceMs: number,
  stopMs = Number.POSITIVE_INFINITY,
  stoppedMs = 0,
): MakeCall {
  const stop = clock.now() + stopMs;
  let freeMs = 0;
  return () => {
    let takenMs = Math.max(clock.now(), freeMs);
    if (takenMs >= stop && takenMs < stop + stoppedMs) takenMs = stop + stoppedMs;
    freeMs = takenMs + serviceMs;
    return new Promise<End>((resolve) =>
      clock.wakeAt(freeMs, () => resolve({ code: 'OK', responseBytes: 10 })),
    );
  };
}
