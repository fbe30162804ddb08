/**
 * Notices that a connection takes calls and brings nothing back: a proxy that has lost the server, or a
 * server that is stopped. Updated by the calls of a session, on its JS thread.
 *
 * The server answers each CANCEL at once, however slow its handlers are. A call that ends at its deadline
 * and is not released soon is therefore a sign that the path or the server does not work at all.
 */
import { clockMs } from '../../clock.ts';

/** One call may be lost, and two by chance. */
const silentCalls = 3;

export class Silence {
  /** Calls that have ended at their deadlines since the server was last heard. */
  calls = 0;
  /** The shortest silence, in milliseconds, that is reported; set by the owner of the connection. */
  limitMs = Number.POSITIVE_INFINITY;
  readonly #onSilence: (silentMs: number) => void;
  #sinceMs = 0;

  /** `onSilence` is called for each deadline that passes in a silence of more than `limitMs`. */
  constructor(onSilence: (silentMs: number) => void) {
    this.#onSilence = onSilence;
  }

  /** A call has ended at its deadline, and the server has not released it yet. */
  deadline(): void {
    const nowMs = clockMs();
    // From the first deadline on: when this thread was busy or its process stopped, answers have waited, too.
    if (this.calls++ === 0) this.#sinceMs = nowMs;
    const silentMs = nowMs - this.#sinceMs;
    if (this.calls >= silentCalls && silentMs >= this.limitMs) this.#onSilence(silentMs);
  }

  /** The server has answered or released a call. */
  heard(): void {
    this.calls = 0;
  }
}
