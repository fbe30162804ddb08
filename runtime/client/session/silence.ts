/**
 * Notices that a connection takes calls and brings nothing back: their handlers are slow, or a proxy has lost
 * the server, or the server is stopped. Updated by the calls of a session, on its JS thread.
 */
import { clockMs } from '../../clock.ts';

/** One call may be slow, and two by chance. */
const silentCalls = 3;

export class Silence {
  /** Calls that have ended at their deadlines since something was last heard of the server. */
  calls = 0;
  /** The shortest silence, in milliseconds, that is reported; set by the owner of the connection. */
  limitMs = Number.POSITIVE_INFINITY;
  readonly #onSilence: () => void;
  #sinceMs = 0;

  /** `onSilence` is called for each deadline that passes in a silence of `limitMs` and more. */
  constructor(onSilence: () => void) {
    this.#onSilence = onSilence;
  }

  /** A call has ended at its deadline. */
  deadline(): void {
    const nowMs = clockMs();
    // The silence is counted from the first deadline, not from the last answer: while this thread was busy or
    // its process stopped, answers may have arrived that are still unread.
    if (this.calls++ === 0) this.#sinceMs = nowMs;
    if (this.calls >= silentCalls && nowMs - this.#sinceMs >= this.limitMs) this.#onSilence();
  }

  /** The server has answered or released a call, or has answered a ping. */
  heard(): void {
    this.calls = 0;
  }
}
