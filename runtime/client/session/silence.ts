/**
 * Notices when a server does not answer the calls of a connection. Possible causes are slow handlers, a proxy
 * that has lost the server, and a server that is stopped. The calls of a session update this object on the
 * session's JS thread.
 */
import { clockMs } from '../../clock.ts';

/** Number of calls without an answer that count as silence. One or two calls may be slow by chance. */
const silentCalls = 3;

export class Silence {
  /** Number of calls that have ended at their deadlines since the last answer of the server. */
  calls = 0;
  /** Number of silences that have ended because the server was heard. */
  ends = 0;
  /** The shortest silence in milliseconds that is reported. The owner of the connection sets it. */
  limitMs = Number.POSITIVE_INFINITY;
  readonly #onSilence: () => void;
  #sinceMs = 0;

  /** `onSilence` is called for each deadline that passes during a silence of at least `limitMs`. */
  constructor(onSilence: () => void) {
    this.#onSilence = onSilence;
  }

  /** Runs when a call has ended at its deadline. */
  deadline(): void {
    const nowMs = clockMs();
    // The silence begins at the first deadline, not at the last answer. This thread may have been busy, or
    // its process stopped, and answers may have arrived in that time that are still unread.
    if (this.calls++ === 0) this.#sinceMs = nowMs;
    if (this.calls >= silentCalls && nowMs - this.#sinceMs >= this.limitMs) this.#onSilence();
  }

  /**
   * Runs during a silence when the server has answered or released a call, and at the end of a check that
   * lets the connection stay.
   */
  heard(): void {
    this.calls = 0;
    ++this.ends;
  }
}
