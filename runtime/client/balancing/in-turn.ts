/**
 * Round robin: connections take calls in turn. With weights, a connection is passed over in some rounds, so
 * that each gets its share of the calls and its turns are spread evenly: the heaviest takes a call in each
 * round, and one of a third of its weight in each third round. Used by the connections of a channel.
 */
import { type Candidate, firstWithRoom, type Policy, type Room } from './policy.ts';

export class InTurn<C extends Candidate> implements Policy<C> {
  #ready: readonly C[] = [];
  /** Weights in relation to the heaviest, so that each round has at least one turn. */
  #shares: number[] = [];
  /** What each connection has of its next turn; it takes a call at 1. */
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

  /** The same with other weights. A connection that stays keeps what it has of its next turn. */
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
    // A connection without room loses its turn. After as many of them, one with room may be a light one,
    // whose turn is rounds away.
    for (let turns = 0; turns < ready.length; ) {
      const at = this.#next;
      this.#next = at + 1 === ready.length ? 0 : at + 1;
      const credit = credits[at]! + this.#shares[at]!;
      // Sums of fractions stay a little below the whole number that they stand for.
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
