/**
 * Weighted round robin by load reports, as in gRPC (A58): turns as in round robin, by the weights that the
 * servers' reports give. Servers without a usable report get the mean of the others; with fewer than two
 * reports the weights of the list count. Used by the connections of a channel.
 */
import { InTurn } from './in-turn.ts';
import type { Candidate, Policy, Room } from './policy.ts';

/** A connection that may have a weight by its server's reports; 0 for none. */
export interface Reporting extends Candidate {
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
    const mean = known.reduce((sum, weight) => sum + weight, 0) / known.length;
    if (known.length < 2) this.#turns.update(this.#ready);
    else
      this.#turns.updateBy(
        this.#ready,
        weights.map((weight) => (weight > 0 ? weight : mean)),
      );
  }
}
