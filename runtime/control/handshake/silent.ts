/**
 * Connections that have not reached a certain step yet, such as their first frame or the decision of
 * `authenticate`. When there are too many, the oldest connection is closed, so that idle connections never
 * keep out new connections. Each connection is safe for a short time after its arrival, because a thousand
 * connections may arrive in one event-loop iteration, before the server has read any of them. Servers, worker
 * groups and the health port use this file.
 */
import { clockMs } from '../../clock.ts';
import { handshakeGraceMs, handshakeQueueFactor } from '../../limits.ts';

export class Silent<T> {
  readonly #max: number;
  readonly #evict: (one: T) => void;
  readonly #graceMs: number;
  /** The time at which each connection arrived. The entries are in order of arrival. */
  readonly #cameMs = new Map<T, number>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * `evict` closes a connection, which has already been removed. `graceMs` is the time in ms for which a new
   * connection is not closed, except when the number of connections is far above the limit.
   */
  constructor(max: number, evict: (one: T) => void, graceMs: number = handshakeGraceMs) {
    this.#max = max;
    this.#graceMs = graceMs;
    this.#evict = evict;
  }

  get size(): number {
    return this.#cameMs.size;
  }

  add(one: T): void {
    this.#cameMs.set(one, clockMs());
    if (this.#timer === undefined) this.#trim();
    else if (this.size > this.#max * handshakeQueueFactor) this.#dropOldest();
  }

  /** Removes a connection that has reached the step, or has ended. */
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
    this.#evict(oldest!);
  }
}
