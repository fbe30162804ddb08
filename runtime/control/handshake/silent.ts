/**
 * Connections that have not got somewhere yet: to their first frame, or to an answer of `authenticate`. When
 * there are too many the oldest goes, so that those which stay keep nobody away, however many come. But each
 * has time first: of a thousand that come in one turn of the event loop none has been listened to. Used by
 * servers, worker groups and the health port.
 */
import { clockMs } from '../../clock.ts';
import { handshakeGraceMs, handshakesCrowd } from '../../limits.ts';

export class Silent<T> {
  readonly #max: number;
  readonly #sendAway: (one: T) => void;
  readonly #graceMs: number;
  /** When each has come, in that order. */
  readonly #cameMs = new Map<T, number>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * `sendAway`: of one that is not counted any more. `graceMs`: what each has before, unless there are far
   * too many.
   */
  constructor(max: number, sendAway: (one: T) => void, graceMs: number = handshakeGraceMs) {
    this.#max = max;
    this.#graceMs = graceMs;
    this.#sendAway = sendAway;
  }

  get size(): number {
    return this.#cameMs.size;
  }

  add(one: T): void {
    this.#cameMs.set(one, clockMs());
    if (this.#timer === undefined) this.#trim();
    else if (this.size > this.#max * handshakesCrowd) this.#dropOldest();
  }

  /** It has got there, or gone. */
  delete(one: T): void {
    this.#cameMs.delete(one);
  }

  #trim(): void {
    this.#timer = undefined;
    while (this.size > this.#max) {
      const [cameMs] = this.#cameMs.values();
      const leftMs = cameMs! + this.#graceMs - clockMs();
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.#trim(), leftMs).unref();
        return;
      }
      this.#dropOldest();
    }
  }

  #dropOldest(): void {
    const [oldest] = this.#cameMs.keys();
    this.#cameMs.delete(oldest!);
    this.#sendAway(oldest!);
  }
}
