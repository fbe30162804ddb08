/**
 * Consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam, 2016). Calls with the same value of
 * a metadata key go to the same server, whose caches already have the data for that key. When that server has
 * more than `maxLoad` times its share of the calls in flight, these calls go to the next server on the ring.
 * The next server is also always the same. Calls without the key go to the less loaded of two random servers.
 * The connections of a channel use this file.
 */
import { HashRing } from './hash-ring.ts';
import { keyHash } from './key-hash.ts';
import { LeastLoaded } from './least-loaded.ts';
import { type Candidate, firstWithRoom, type Listed, type Policy, type Room } from './policy.ts';

/**
 * With n servers, the calls in flight are counted again after every n picks. Thus a pick among a hundred
 * servers does not have to ask each server.
 */
const serversPerPick = 8;

export class BoundedHash<C extends Candidate> implements Policy<C> {
  readonly #key: Uint8Array;
  readonly #maxLoad: number;
  readonly #unkeyed: LeastLoaded<C>;
  #listed: readonly Listed[] | undefined;
  #ring = new HashRing([]);
  #ready: readonly C[] = [];
  /** The connection that takes calls for each index in the list; undefined for an address without one. */
  #places: (C | undefined)[] = [];
  #weights = 0;
  /** An upper bound of the calls in flight: those that were counted last, plus the picks since then. */
  #calls = 0;
  /** Number of picks until the calls in flight are counted again. */
  #countIn = 0;

  /** `key` is the name of the metadata key in the bytes that are sent. `maxLoad` is at least 1. */
  constructor(key: Uint8Array, maxLoad: number, random?: () => number) {
    this.#key = key;
    this.#maxLoad = maxLoad;
    this.#unkeyed = new LeastLoaded(random);
  }

  /**
   * The ring has all addresses of the list, so that a server that was away for a while gets its keys back.
   */
  update(ready: readonly C[], listed: readonly Listed[]): void {
    if (this.#listed !== listed) this.#ring = new HashRing(listed);
    this.#listed = listed;
    this.#ready = ready;
    const byAddress = new Map(ready.map((each) => [each.address, each]));
    this.#places = listed.map(({ address }) => byAddress.get(address));
    this.#weights = ready.reduce((sum, { weight }) => sum + weight, 0);
    this.#countIn = 0;
    this.#unkeyed.update(ready);
  }

  pick(room: Room<C>, metadata: Uint8Array | undefined): C | undefined {
    ++this.#calls;
    --this.#countIn;
    const hash = metadata === undefined ? -1 : keyHash(metadata, this.#key);
    if (hash < 0) return this.#unkeyed.pick(room);
    const ring = this.#ring;
    const first = ring.positionOf(hash);
    let limit = 0;
    for (let i = 0; i < ring.size; ++i) {
      const candidate = this.#places[ring.ownerAt(first + i)];
      if (candidate === undefined) continue;
      // A server without a call in flight is never above its share, so the limit need not be computed for it.
      if (candidate.load > 0) {
        limit ||= this.#limit();
        if (candidate.load >= Math.ceil(limit * candidate.weight)) continue;
      }
      if (room(candidate)) return candidate;
    }
    // Every server is at its limit or has no free call slot, so the first server that has a slot takes the
    // call.
    return firstWithRoom(this.#ready, first % this.#ready.length, room);
  }

  /**
   * Returns the most calls in flight for a weight of 1. The result includes the call that is about to be
   * made.
   */
  #limit(): number {
    if (this.#countIn <= 0) {
      this.#countIn = Math.floor(this.#ready.length / serversPerPick);
      this.#calls = 1;
      for (const { load } of this.#ready) this.#calls += load;
    }
    return (this.#maxLoad * this.#calls) / this.#weights;
  }
}
