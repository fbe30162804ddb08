/**
 * What a session's server has answered: bad answers in a row, and how many of all were bad. For channels with
 * several addresses; counted with each call.
 */
import { Status } from '../../core/errors/status.ts';

/** Answers that speak against the server rather than the request. */
const badCodes: ReadonlySet<number> = new Set([
  Status.UNKNOWN,
  Status.DEADLINE_EXCEEDED,
  Status.RESOURCE_EXHAUSTED,
  Status.INTERNAL,
  Status.UNAVAILABLE,
  Status.DATA_LOSS,
]);

export class AnswerTally {
  /** Bad answers in a row that `onStrikes` is told of; 0: it never is. */
  strikesMax = 0;
  readonly #onStrikes: () => void;
  #strikes = 0;
  #answers = 0;
  #bad = 0;

  constructor(onStrikes: () => void) {
    this.#onStrikes = onStrikes;
  }

  count(status: number): void {
    ++this.#answers;
    if (status === Status.OK) {
      if (this.#strikes !== 0) this.#strikes = 0;
    } else if (badCodes.has(status)) {
      ++this.#bad;
      if (++this.#strikes === this.strikesMax) this.#onStrikes();
    }
  }

  /** No more bad answers in a row. */
  forgive(): void {
    this.#strikes = 0;
  }

  /** Since it was asked last. */
  take(): { readonly answers: number; readonly bad: number } {
    const tally = { answers: this.#answers, bad: this.#bad };
    this.#answers = 0;
    this.#bad = 0;
    return tally;
  }
}
