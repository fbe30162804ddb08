/**
 * A queue of calls or streams that wait to be sent. An entry is sent when it is the head. A cancelled entry
 * leaves the queue from any position. The owner checks `size` before it adds an entry. The queue of a channel
 * uses this file on its JS thread.
 */
import { requestFault } from '../../core/errors/failure.ts';
import type { Lengths } from '../../core/lengths.ts';

/** A call or a stream. It can be in only one queue at a time. */
export abstract class Waiter {
  /** The queue of the entry. `previous` and `next` are its neighbours. */
  queuedIn: object | undefined;
  previous: Waiter | undefined;
  next: Waiter | undefined;
  /** Lengths of the request's buffers when the entry was queued. */
  lengths: Lengths | undefined;

  /** Path of the method. */
  abstract readonly path: string;
  /** True when the entry goes on waiting after failed attempts to connect. */
  abstract readonly waitForReady: boolean;
  /** The deadline in milliseconds on the clock of `clockMs()`, or Infinity for no deadline. */
  abstract readonly endMs: number;
  /** Returns the current lengths of the request's buffers. */
  abstract measure(): Lengths | undefined;
  /** Runs when the entry has been added to a queue. */
  abstract onWaiting(): void;
  /** Runs when the entry has left its queue, for any reason. */
  abstract onLeaving(): void;
  /** Runs when the entry has left the queue with an error. */
  abstract fail(error: Error): void;
  /** Runs when the entry was refused without being queued. */
  abstract refuse(makeError: () => Error): void;
}

export class WaitQueue<Entry extends Waiter> {
  size = 0;
  #head: Entry | undefined;
  #tail: Entry | undefined;
  #starting = false;
  /**
   * The head while it is being sent. Its request may run user code in this time, which may cancel the entry,
   * close the channel, or make calls.
   */
  #trying: Entry | undefined;
  /** The error with which the head has failed during that time. */
  #fate: Error | undefined;

  get head(): Entry | undefined {
    return this.#head;
  }

  get tail(): Entry | undefined {
    return this.#tail;
  }

  *[Symbol.iterator](): Generator<Entry> {
    for (let entry = this.#head; entry !== undefined; entry = entry.next as Entry | undefined) yield entry;
  }

  push(entry: Entry): void {
    entry.lengths = entry.measure();
    entry.queuedIn = this;
    entry.previous = this.#tail;
    if (this.#tail === undefined) this.#head = entry;
    else this.#tail.next = entry;
    this.#tail = entry;
    ++this.size;
    entry.onWaiting();
  }

  /** Starts entries in order, as long as `start` succeeds. */
  startAll(start: (entry: Entry) => boolean): void {
    // Returns when this method is already running. The start of the head may have lost a connection while
    // another connection is ready; the outer loop then continues with the other connection.
    if (this.#starting) return;
    this.#starting = true;
    try {
      for (let entry = this.#head; entry !== undefined; entry = this.#head) {
        if (!this.tryHead(entry, start)) break;
      }
    } finally {
      this.#starting = false;
    }
  }

  /** Removes an entry if it is in this queue. Its deadline and signal are then no longer watched here. */
  remove(entry: Entry): void {
    if (entry.queuedIn !== this) return;
    entry.queuedIn = undefined;
    const next = entry.next as Entry | undefined;
    const previous = entry.previous as Entry | undefined;
    if (previous === undefined) this.#head = next;
    else previous.next = next;
    if (next === undefined) this.#tail = previous;
    else next.previous = previous;
    entry.previous = undefined;
    entry.next = undefined;
    --this.size;
    entry.onLeaving();
  }

  /**
   * Passes the head to `start`. Returns false when the head could not be sent and stays in the queue.
   * Otherwise the head has left the queue.
   */
  tryHead(entry: Entry, start: (entry: Entry) => boolean): boolean {
    try {
      entry.lengths?.check();
    } catch (cause) {
      this.fail(entry, requestFault(entry.path, cause));
      return true;
    }
    this.#trying = entry;
    let started = false;
    try {
      started = start(entry);
    } finally {
      this.#trying = undefined;
    }
    const fate = this.#fate;
    this.#fate = undefined;
    // If the head was sent, an error that occurred while it was being sent is dropped. The receiver of the
    // entry checks signal and deadline once more, and closing the channel also ends the connection.
    if (started) this.remove(entry);
    else if (fate !== undefined) this.fail(entry, fate);
    return started || fate !== undefined;
  }

  fail(entry: Entry, error: Error): void {
    if (entry === this.#trying) {
      this.#fate ??= error;
      return;
    }
    this.remove(entry);
    entry.fail(error);
  }

  /** Fails every entry with the error that `errorFor` creates for the path of its method. */
  failAll(errorFor: (path: string) => Error): void {
    this.#failThose(() => true, errorFor);
  }

  /** Does the same as `failAll`, for entries that stop waiting after a failed attempt to connect. */
  failUnlessWaitForReady(errorFor: (path: string) => Error): void {
    this.#failThose((entry) => !entry.waitForReady, errorFor);
  }

  #failThose(meant: (entry: Entry) => boolean, errorFor: (path: string) => Error): void {
    let next: Entry | undefined;
    for (let entry = this.#head; entry !== undefined; entry = next) {
      next = entry.next as Entry | undefined;
      if (meant(entry)) this.fail(entry, errorFor(entry.path));
    }
  }
}
