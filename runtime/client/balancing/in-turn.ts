/**
 * Round robin: connections take calls in turn. When the connections have different weights, a connection with
 * a small weight is passed over in some rounds. Each connection then gets its share of the calls, at even
 * distances. The heaviest connection takes a call in each round; a connection with a third of that weight
 * takes a call in each third round. The connections of a channel use this file.
 */
import { type Candidate, firstWithRoom, type Policy, type Room } from './policy.ts';

export class InTurn<C extends Candidate> implements Policy<C> {
  #ready: readonly C[] = [];
  /**
   * Each weight divided by the largest weight. As a result, at least one connection takes a call in each
   * round.
   */
  #shares: number[] = [];
  /**
   * Sum of the shares of each connection since its last turn. The connection takes a call when it reaches 1.
   */
  #credits: number[] = [];
  #next = 0;
  readonly #random: () => number;

  /**
   * `random` returns at least 0 and less than 1. Turns begin at a random connection, so that many clients
   * that start together do not all begin with the first server of the list.
   */
  constructor(random: () => number = () => 0) {
    this.#random = random;
  }

  update(ready: readonly C[]): void {
    this.updateBy(
      ready,
      ready.map(({ weight }) => weight),
    );
  }

  /**
   * Does the same as update(), but with weights of the caller. A connection that stays in the list keeps its
   * credit.
   */
  updateBy(ready: readonly C[], weights: readonly number[]): void {
    const heaviest = weights.reduce((most, weight) => Math.max(most, weight), 0);
    const credits = new Map(this.#ready.map((each, i) => [each.address, this.#credits[i]!]));
    this.#ready = ready;
    this.#shares = weights.map((weight) => weight / heaviest);
    this.#credits = ready.map(({ address }) => credits.get(address) ?? 0);
    if (ready.length > credits.size) this.#next = Math.floor(this.#random() * ready.length);
    if (this.#next >= ready.length) this.#next = 0;
  }

  pick(room: Room<C>): C | undefined {
    const ready = this.#ready;
    const credits = this.#credits;
    // A connection without room loses its turn. The loop ends after each connection has lost one turn,
    // because the only connection with room may be a light connection whose turn is many rounds away.
    for (let turns = 0; turns < ready.length; ) {
      const at = this.#next;
      this.#next = at + 1 === ready.length ? 0 : at + 1;
      const credit = credits[at]! + this.#shares[at]!;
      // A sum of fractions, such as three times 1/3, may be a little below 1 because of rounding.
      if (credit < 1 - 1e-9) {
        credits[at] = credit;
        continue;
      }
      credits[at] = Math.max(0, credit - 1);
      if (room(ready[at]!)) return ready[at];
      ++turns;
    }
    return firstWithRoom(ready, this.#next, room);
  }
}
