/**
 * Prints the errors of connections to the log of a tunnel. Equal errors of one second become one line with
 * their number.
 */
import { clockMs } from '../../runtime/clock.ts';
import { printableLine } from '../output.ts';

const pauseMs = 1_000;

export class Reports {
  readonly #print: (line: string) => void;
  readonly #waiting = new Map<string, number>();
  #lastMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  add(error: Error, wasConnecting: boolean): void {
    const line = `${wasConnecting ? 'not connected' : 'connection lost'}: ${printableLine(error.message)}`;
    this.#waiting.set(line, (this.#waiting.get(line) ?? 0) + 1);
    if (this.#timer !== undefined) return;
    const leftMs = this.#lastMs + pauseMs - clockMs();
    if (leftMs <= 0) this.flush();
    else this.#timer = setTimeout(() => this.flush(), leftMs).unref();
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#lastMs = clockMs();
    for (const [line, count] of this.#waiting) this.#print(count === 1 ? line : `${line} (${count} times)`);
    this.#waiting.clear();
  }
}
