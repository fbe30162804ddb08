/**
 * Keeps the process alive while a channel has calls in flight, and only then. The socket itself does not keep
 * the process alive. Instead, a timer runs from the first call until it finds no call in flight. Therefore
 * starting a call costs only one comparison. The timer also shows which call is the first after an idle time.
 */

import { clockMs } from '../../clock.ts';
import { inRoot } from '../../core/scopes.ts';
import { stopInterval } from '../../core/stop-timer.ts';
import { keepAliveCheckMs } from './limits.ts';

export class KeepAlive {
  readonly #busy: () => boolean;
  #timer: NodeJS.Timeout | undefined;
  #silentSinceMs = Number.POSITIVE_INFINITY;

  constructor(busy: () => boolean) {
    this.#busy = busy;
  }

  get running(): boolean {
    return this.#timer !== undefined;
  }

  /** Returns the number of milliseconds in which no call was in flight, or 0 for the first call. */
  start(): number {
    if (this.#timer !== undefined) return 0;
    const look = (): void => {
      if (!this.#busy()) this.stop();
    };
    this.#timer = inRoot(() => setInterval(look, keepAliveCheckMs));
    return Math.max(0, clockMs() - this.#silentSinceMs);
  }

  stop(): void {
    stopInterval(this.#timer);
    this.#timer = undefined;
    this.#silentSinceMs = clockMs();
  }
}
