/**
 * A queue of calls, responses or streams of one owner that wait because there was too little of a resource
 * (resource-waiters.ts). When the resource may be available again, entries are tried in order from the head
 * until one finds too little. Therefore smaller entries never starve the entries in front of them. Because
 * the queue stops at that entry, at most one attempt is made in vain, however many entries wait. This matters
 * because each attempt encodes a message. The channels and the sessions of both sides use it, on their JS
 * thread.
 *
 * | an entry that is tried                    | afterwards                                                     |
 * |-------------------------------------------|----------------------------------------------------------------|
 * | does not call `add` again                 | has left the queue; the next one is tried                      |
 * | calls `add` again                         | keeps its position, and the others wait behind it              |
 * | calls `add` again after sending something | becomes the last, and the others wait for the next time        |
 * | calls `add` again for a registration      | keeps its position; the next one is tried                      |
 * | throws, which only a bug of ours does    | keeps its position and its deadline, and the next one is tried |
 * | is deleted, or its deadline passes        | has left; if it was the first, the others are tried            |
 */
import { warnOfFault } from '../../core/warnings.ts';
import { deadlines } from '../time/deadlines.ts';
import type { DeadlineOwner } from '../time/timer-wheel.ts';
import type { Resource, ResourceWaiter, ResourceWaiters } from './resource-waiters.ts';

export interface QueueOwner<Entry> {
  /** Tries the entry. The entry calls `add` again when it still finds too little. */
  retry(entry: Entry): void;
  /** The deadline of an entry has passed, and the entry has been removed. This function must not throw. */
  onLate?(entry: Entry): void;
}

const noTimer = -1;

class Waiting<Entry> implements DeadlineOwner {
  readonly entry: Entry;
  timer = noTimer;
  /**
   * While the entry is being tried: the resource that it must wait for again, and whether it has sent
   * something before that.
   */
  again: Resource | undefined;
  moved = false;
  readonly #onLate: (waiting: Waiting<Entry>) => void;

  constructor(entry: Entry, onLate: (waiting: Waiting<Entry>) => void) {
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
  readonly #waiting = new Map<Entry, Waiting<Entry>>();
  #trying: Waiting<Entry> | undefined;
  /** The current position while the entries are being tried. */
  #round: Iterator<Waiting<Entry>, undefined> | undefined;

  constructor(owner: QueueOwner<Entry>) {
    this.#owner = owner;
  }

  get size(): number {
    return this.#waiting.size;
  }

  [Symbol.iterator](): Iterator<Entry> {
    return this.#waiting.keys();
  }

  /** The entry that is being tried, if any. */
  get trying(): Entry | undefined {
    return this.#trying?.entry;
  }

  /**
   * Adds an entry that has found too little of `resource` in the context of `waiters`. An entry that is being
   * tried keeps its position, unless it has sent something. In that case it becomes the last entry.
   * `deadlineMs` is the time at which a new entry stops waiting; 0 means never. Returns false, without adding
   * the entry, when it would wait for ever.
   */
  add(entry: Entry, waiters: ResourceWaiters, resource: Resource, deadlineMs = 0): boolean {
    if (!waiters.wait(resource, this)) return false;
    if (this.#trying?.entry === entry) this.#trying.again = resource;
    if (this.#waiting.has(entry)) return true;
    const waiting = this.#trying?.entry === entry ? this.#trying : new Waiting(entry, this.#onLate);
    if (deadlineMs !== 0 && waiting.timer === noTimer) waiting.timer = deadlines.add(deadlineMs, waiting, 0);
    this.#waiting.set(entry, waiting);
    return true;
  }

  /**
   * Records that an entry has sent something while it was being tried. The entry then gives up its position
   * to the other entries.
   */
  moved(entry: Entry): void {
    if (this.#trying?.entry === entry) this.#trying.moved = true;
  }

  /** Removes an entry. Returns false when the entry was not in the queue. */
  delete(entry: Entry): boolean {
    const waiting = this.#waiting.get(entry);
    if (waiting === undefined) return false;
    const wasFirst = this.#isFirst(waiting);
    this.#remove(waiting);
    if (wasFirst) this.retryAll();
    return true;
  }

  /** Removes all entries from the queue and returns them. */
  clear(): Entry[] {
    const entries = [...this.#waiting.keys()];
    for (const waiting of this.#waiting.values()) this.#remove(waiting);
    return entries;
  }

  retryAll(): void {
    while (this.retry());
  }

  retry(): boolean {
    // The entry that is being tried has caused this call: it has freed memory, or another connection has
    // become ready. The loop that tries this entry continues with the next entries.
    if (this.#trying !== undefined) return false;
    this.#round ??= this.#waiting.values() as Iterator<Waiting<Entry>, undefined>;
    for (let waiting = this.#round.next().value; waiting !== undefined; waiting = this.#round.next().value) {
      const found = this.#try(waiting);
      if (found === 'something') return true;
      if (found === 'nothing') break;
    }
    this.#round = undefined;
    return false;
  }

  #try(waiting: Waiting<Entry>): 'something' | 'nothing' | 'no matter' {
    this.#trying = waiting;
    waiting.again = undefined;
    waiting.moved = false;
    try {
      this.#owner.retry(waiting.entry);
    } catch (error) {
      warnOfFault(error);
      return 'no matter';
    } finally {
      this.#trying = undefined;
    }
    if (waiting.again === undefined || this.#waiting.get(waiting.entry) !== waiting) {
      this.#remove(waiting);
      return 'something';
    }
    if (waiting.moved) {
      this.#waiting.delete(waiting.entry);
      this.#waiting.set(waiting.entry, waiting);
    }
    return waiting.again === 'registration' ? 'no matter' : 'nothing';
  }

  readonly #onLate = (waiting: Waiting<Entry>): void => {
    const wasFirst = this.#isFirst(waiting);
    this.#remove(waiting);
    this.#owner.onLate?.(waiting.entry);
    if (wasFirst) this.retryAll();
  };

  /**
   * Returns whether the entry is the first. When the first entry leaves, the other entries must be tried,
   * because they may need less memory than the first entry.
   */
  #isFirst(waiting: Waiting<Entry>): boolean {
    const [first] = this.#waiting.values();
    return first === waiting;
  }

  #remove(waiting: Waiting<Entry>): void {
    if (waiting.timer !== noTimer) deadlines.remove(waiting.timer);
    waiting.timer = noTimer;
    if (this.#waiting.get(waiting.entry) === waiting) this.#waiting.delete(waiting.entry);
  }
}
