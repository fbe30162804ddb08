/**
 * Node warnings about clients that a server refuses. They are shown when the application uses none of the
 * options `log` and `onSession`. The first refusal is shown at once. Later refusals are counted, and their
 * number is shown once a minute, because unauthenticated peers may cause thousands of refusals a second.
 * Servers and worker groups use this file on their JS thread.
 */

import { refusalSumMs } from '../limits.ts';
import { oneLine } from './log.ts';
import { stopInterval } from './stop-timer.ts';
import { processWarning, type Warn } from './warnings.ts';

export class RefusalWarnings {
  readonly #warn: Warn;
  /** Number of refusals since the last warning. */
  #count = 0;
  #last = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(warn: Warn = processWarning) {
    this.#warn = warn;
  }

  /**
   * Reports a refused client as a warning. Later refusals are counted, and reported as a sum. `line` names
   * the client that was refused, and the reason.
   */
  add(line: string): void {
    if (this.#timer !== undefined) {
      ++this.#count;
      this.#last = line;
      return;
    }
    this.#warn(`a client was refused: ${oneLine(line)} (option log gets a line for each)`);
    this.#timer = setInterval(() => this.sum(), refusalSumMs);
    this.#timer.unref();
  }

  /**
   * Shows how many refusals there have been since the last warning. After a minute without a refusal, the
   * next refusal is shown at once.
   */
  sum(): void {
    if (this.#count === 0) {
      stopInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const clients = this.#count === 1 ? '1 more client was' : `${this.#count} more clients were`;
    this.#warn(`${clients} refused; the last: ${oneLine(this.#last)}`);
    this.#count = 0;
  }
}
