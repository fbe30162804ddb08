/**
 * Keeps the process alive while a channel has calls under way, and only then. The socket is unreferenced; instead a timer runs from the first
 * call until it finds none, so that starting a call costs one comparison.
 */
import { keepAliveCheckMs } from '../limits.ts';

export class KeepAlive {
  readonly #busy: () => boolean;
  #timer: NodeJS.Timeout | undefined;

  constructor(busy: () => boolean) {
    this.#busy = busy;
  }

  get running(): boolean {
    return this.#timer !== undefined;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      if (!this.#busy()) this.stop();
    }, keepAliveCheckMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
