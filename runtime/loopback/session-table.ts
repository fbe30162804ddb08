/**
 * The sessions of a loopback context by their numbers. The low bits of a number are the index in the table.
 * The other bits count how often that entry has been used. LoopbackContext uses this file on its JS thread.
 */
import { sessionIndexMask } from '../limits.ts';
import type { LoopbackSession } from './session.ts';

const placeBits = 14;
const generationMask = 0x1_ffff;

export class SessionTable {
  #count = 0;
  readonly #sessions: (LoopbackSession | undefined)[] = [];
  readonly #generations: number[] = [];
  readonly #free: number[] = [];

  get count(): number {
    return this.#count;
  }

  /** Adds the session that `make` returns for its new number. Throws when the table is full. */
  add(make: (number: number) => LoopbackSession): LoopbackSession {
    const place = this.#free.pop() ?? this.#sessions.length;
    if (place > sessionIndexMask)
      throw new Error(
        `fabric loopback: ${sessionIndexMask + 1} sessions are open already; close some channels`,
      );
    const generation = ((this.#generations[place] ?? 0) + 1) & generationMask;
    this.#generations[place] = generation;
    const session = make(generation * 2 ** placeBits + place);
    this.#sessions[place] = session;
    ++this.#count;
    return session;
  }

  find(number: number): LoopbackSession | undefined {
    const session = this.#sessions[number & sessionIndexMask];
    return session?.number === number ? session : undefined;
  }

  delete(number: number): void {
    if (this.find(number) === undefined) return;
    const place = number & sessionIndexMask;
    this.#sessions[place] = undefined;
    this.#free.push(place);
    --this.#count;
  }
}
