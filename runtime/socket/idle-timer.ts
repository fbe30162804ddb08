/** The timer behind `socket.setTimeout()`. It fires once, after a time without activity. */
import { timerMaxMs } from '../limits.ts';

export class IdleTimer {
  readonly #onIdle: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(onIdle: () => void) {
    this.#onIdle = onIdle;
  }

  /**
   * Sets the time in milliseconds; with 0 the timer never fires. Throws a RangeError for a negative time or
   * NaN.
   */
  set(ms: number): void {
    if (typeof ms !== 'number' || !(ms >= 0) || ms === Number.POSITIVE_INFINITY) {
      const text = `The value of "msecs" is out of range. It must be a non-negative finite number. Received ${ms}`;
      throw Object.assign(new RangeError(text), { code: 'ERR_OUT_OF_RANGE' });
    }
    this.stop();
    if (ms > 0) this.#timer = setTimeout(this.#onIdle, Math.min(ms, timerMaxMs)).unref();
  }

  /** Runs when bytes were sent or received. */
  touch(): void {
    this.#timer?.refresh();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
