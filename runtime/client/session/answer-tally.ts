/**
 * Counts the answers of a session's server: consecutive errors, and the number of errors among all answers.
 * Channels with several addresses use it, and each call updates it.
 */
import { Status } from '../../core/errors/status.ts';

/** Status codes that indicate a fault of the server rather than of the request. */
const badCodes: ReadonlySet<number> = new Set([
  Status.UNKNOWN,
  Status.DEADLINE_EXCEEDED,
  Status.RESOURCE_EXHAUSTED,
  Status.INTERNAL,
  Status.UNAVAILABLE,
  Status.DATA_LOSS,
]);

export class AnswerTally {
  /** Number of consecutive errors at which `onConsecutiveErrors` is called. With 0 it is never called. */
  consecutiveErrorsMax = 0;
  /**
   * Receives the event of each answer before the answer is read, for the load reports in trailers. It is
   * undefined when the policy takes no reports.
   */
  onAnswer: ((at: number) => void) | undefined;
  readonly #onConsecutiveErrors: () => void;
  #consecutiveErrors = 0;
  #answers = 0;
  #bad = 0;

  constructor(onConsecutiveErrors: () => void) {
    this.#onConsecutiveErrors = onConsecutiveErrors;
  }

  /** Counts an answer with this status. `at` is the event of the answer; -1 when no event can be read. */
  count(status: number, at = -1): void {
    ++this.#answers;
    if (at >= 0 && this.onAnswer !== undefined) this.onAnswer(at);
    if (status === Status.OK) {
      if (this.#consecutiveErrors !== 0) this.#consecutiveErrors = 0;
    } else if (badCodes.has(status)) {
      ++this.#bad;
      if (++this.#consecutiveErrors === this.consecutiveErrorsMax) this.#onConsecutiveErrors();
    }
  }

  /** Resets the consecutive errors. */
  forgive(): void {
    this.#consecutiveErrors = 0;
  }

  /** Returns the counts since the last call of this function. */
  take(): { readonly answers: number; readonly bad: number } {
    const tally = { answers: this.#answers, bad: this.#bad };
    this.#answers = 0;
    this.#bad = 0;
    return tally;
  }
}
