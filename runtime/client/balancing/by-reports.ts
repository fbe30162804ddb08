/**
 * Weighted round robin by load reports, as in gRPC (A58). Connections take calls in turn, with the weights
 * that follow from the servers' load reports. A server without a usable report gets the mean weight of the
 * servers that have one. When fewer than two servers have usable reports, the weights of the list are used.
 * The connections of a channel use this file.
 */
import { InTurn } from './in-turn.ts';
import type { Candidate, Policy, Room } from './policy.ts';

/** A connection whose server may send load reports. */
export interface Reporting extends Candidate {
  /** Returns the weight that follows from the reports, or 0 when there is no usable report. */
  reportedWeight(nowMs: number): number;
}

export class ByReports<C extends Reporting> implements Policy<C> {
  readonly #turns: InTurn<C>;
  readonly #updateMs: number;
  readonly #now: () => number;
  #ready: readonly C[] = [];
  #nextMs = 0;

  /** Weights are computed again every `updateMs`, on the clock `now`. */
  constructor(updateMs: number, now: () => number, random?: () => number) {
    this.#turns = new InTurn(random);
    this.#updateMs = updateMs;
    this.#now = now;
  }

  update(ready: readonly C[]): void {
    this.#ready = ready;
    this.#weigh(this.#now());
  }

  pick(room: Room<C>): C | undefined {
    const nowMs = this.#now();
    if (nowMs >= this.#nextMs) this.#weigh(nowMs);
    return this.#turns.pick(room);
  }

  #weigh(nowMs: number): void {
    this.#nextMs = nowMs + this.#updateMs;
    const weights = this.#ready.map((each) => each.reportedWeight(nowMs));
    const known = weights.filter((weight) => weight > 0);
    // The sum of weights may be more than the largest number, but their mean is not.
    const mean = known.reduce((sum, weight) => sum + weight / known.length, 0);
    if (known.length < 2) this.#turns.update(this.#ready);
    else
      this.#turns.updateBy(
        this.#ready,
        weights.map((weight) => (weight > 0 ? weight : mean)),
      );
  }
}
