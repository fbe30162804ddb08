/**
 * Calls, answers or streams of one owner that have found too little of something (resource-waiters.ts). They
 * wait in order. When there may be some again, entries are tried from the head on until one finds none: none
 * is starved by smaller ones behind it, and hundreds that wait cost one attempt more than there is room for,
 * as each attempt encodes a message. Used by the channels and the sessions of both sides, on their JS thread.
 *
 * | an entry that is tried                    | afterwards                                                     |
 * |-------------------------------------------|----------------------------------------------------------------|
 * | does not come back                        | has left the queue; the next one is tried                      |
 * | comes back by `add`                       | keeps its place, and the others wait behind it                 |
 * | comes back and has sent something before  | becomes the last, and the others wait for the next time        |
 * | comes back for a registration of its own  | keeps its place, which keeps no other one waiting              |
 * | throws, which only a fault of ours does   | keeps its place and its deadline, and the next one is tried    |
 * | is deleted, or its deadline passes        | has left; if it was the first, the others are tried            |
 */
import { warnOfFault } from '../../core/warnings.ts';
import { deadlines } from '../time/deadlines.ts';
import type { DeadlineOwner } from '../time/timer-wheel.ts';
import type { Resource, ResourceWaiter, ResourceWaiters } from './resource-waiters.ts';

export interface QueueOwner<Entry> {
  /** Tries the entry, which comes back by `add` when it still finds too little. */
  retry(entry: Entry): void;
  /** Its deadline has passed, and it waits no longer. Must not throw. */
  onLate?(entry: Entry): void;
}

const noTimer = -1;

class Place<Entry> implements DeadlineOwner {
  readonly entry: Entry;
  timer = noTimer;
  /** While it is tried: what it has asked for again, and whether it has sent something before. */
  again: Resource | undefined;
  moved = false;
  readonly #onLate: (place: Place<Entry>) => void;

  constructor(entry: Entry, onLate: (place: Place<Entry>) => void) {
    this.entry = entry;
    this.#onLate = onLate;
  }

  onDeadline(): void {
    this.timer = noTimer;
    this.#onLate(this);
  }
}

export class ResourceQueue<Entry extends object> implements ResourceWaiter {
  readonly #owner: QueueOwner<Entry>;
  readonly #places = new Map<Entry, Place<Entry>>();
  #trying: Place<Entry> | undefined;
  /** How far the entries have been tried, while they are. */
  #round: Iterator<Place<Entry>, undefined> | undefined;

  constructor(owner: QueueOwner<Entry>) {
    this.#owner = owner;
  }

  get size(): number {
    return this.#places.size;
  }

  [Symbol.iterator](): Iterator<Entry> {
    return this.#places.keys();
  }

  /** The entry that is being tried. */
  get trying(): Entry | undefined {
    return this.#trying?.entry;
  }

  /**
   * The entry has found too little of `resource` in the context that `waiters` are of: it keeps its place, or
   * becomes the last. `deadlineMs`: when it stops waiting, if it has not waited before; 0 for never. Returns
   * false when it would wait for ever; nothing has happened then.
   */
  add(entry: Entry, waiters: ResourceWaiters, resource: Resource, deadlineMs = 0): boolean {
    if (!waiters.wait(resource, this)) return false;
    if (this.#trying?.entry === entry) this.#trying.again = resource;
    if (this.#places.has(entry)) return true;
    const place = this.#trying?.entry === entry ? this.#trying : new Place(entry, this.#onLate);
    if (deadlineMs !== 0 && place.timer === noTimer) place.timer = deadlines.add(deadlineMs, place, 0);
    this.#places.set(entry, place);
    return true;
  }

  /** The entry has sent something, if it is being tried: it has had its turn. */
  moved(entry: Entry): void {
    if (this.#trying?.entry === entry) this.#trying.moved = true;
  }

  /** The entry waits no longer. Returns false when it has not waited. */
  delete(entry: Entry): boolean {
    const place = this.#places.get(entry);
    if (place === undefined) return false;
    const wasFirst = this.#isFirst(place);
    this.#remove(place);
    if (wasFirst) this.retryAll();
    return true;
  }

  /** Takes all entries out of the queue, and returns them. */
  clear(): Entry[] {
    const entries = [...this.#places.keys()];
    for (const place of this.#places.values()) this.#remove(place);
    return entries;
  }

  retryAll(): void {
    while (this.retry());
  }

  retry(): boolean {
    // What the entry does has made room, or has brought another connection: this goes on behind it.
    if (this.#trying !== undefined) return false;
    this.#round ??= this.#places.values() as Iterator<Place<Entry>, undefined>;
    for (let place = this.#round.next().value; place !== undefined; place = this.#round.next().value) {
      const found = this.#try(place);
      if (found === 'something') return true;
      if (found === 'nothing') break;
    }
    this.#round = undefined;
    return false;
  }

  #try(place: Place<Entry>): 'something' | 'nothing' | 'no matter' {
    this.#trying = place;
    place.again = undefined;
    place.moved = false;
    try {
      this.#owner.retry(place.entry);
    } catch (error) {
      warnOfFault(error);
      return 'no matter';
    } finally {
      this.#trying = undefined;
    }
    if (place.again === undefined || this.#places.get(place.entry) !== place) {
      this.#remove(place);
      return 'something';
    }
    if (place.moved) {
      this.#places.delete(place.entry);
      this.#places.set(place.entry, place);
    }
    return place.again === 'registration' ? 'no matter' : 'nothing';
  }

  readonly #onLate = (place: Place<Entry>): void => {
    const wasFirst = this.#isFirst(place);
    this.#remove(place);
    this.#owner.onLate?.(place.entry);
    if (wasFirst) this.retryAll();
  };

  /** The others may have waited behind it for memory that would have been enough for them. */
  #isFirst(place: Place<Entry>): boolean {
    const [first] = this.#places.values();
    return first === place;
  }

  #remove(place: Place<Entry>): void {
    if (place.timer !== noTimer) deadlines.remove(place.timer);
    place.timer = noTimer;
    if (this.#places.get(place.entry) === place) this.#places.delete(place.entry);
  }
}
