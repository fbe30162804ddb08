/**
 * A queue of calls or streams that wait to be sent: they leave it at its head, or anywhere when they are
 * given up. The owner of the queue looks at its `size` before it lets one more in. Used by the queue of a
 * channel, on its JS thread.
 */
import { requestFault } from '../../core/errors/failure.ts';
import type { Lengths } from '../../core/lengths.ts';

/** A call or a stream, which may stand in one queue at a time. */
export abstract class Waiter {
  /** Where it stands, and between whom. */
  queuedIn: object | undefined;
  previous: Waiter | undefined;
  next: Waiter | undefined;
  /** Of its request, when it came. */
  lengths: Lengths | undefined;

  /** Of its method. */
  abstract readonly path: string;
  /** It outlasts failed attempts to connect. */
  abstract readonly waitForReady: boolean;
  /** Its deadline, ms on the clock of `clockMs()`; Infinity for none. */
  abstract readonly endMs: number;
  /** Lengths of its request now. */
  abstract measure(): Lengths | undefined;
  /** It stands in a queue from now on; or no longer, whatever becomes of it. */
  abstract onWaiting(): void;
  abstract onLeaving(): void;
  /** The end: it has been waiting and has left the queue. */
  abstract fail(error: Error): void;
  /** The end: it was never let in. */
  abstract refuse(makeError: () => Error): void;
}

export class WaitQueue<Entry extends Waiter> {
  size = 0;
  #head: Entry | undefined;
  #tail: Entry | undefined;
  #starting = false;
  /**
   * The head, while it is being sent. Its request may do anything meanwhile: give it up, close the channel,
   * make calls.
   */
  #trying: Entry | undefined;
  /** Why it has failed in that time. */
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

  /** Starts entries, the first one first, as long as `start` can. */
  startAll(start: (entry: Entry) => boolean): void {
    // Starting the head has lost a connection, and another one is there: the loop below goes on with it.
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

  /**
   * Takes an entry out, if it stands here; its deadline and signal are somebody else's business from now on.
   */
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

  /** Hands the head to `start`. False: it could not be sent, and stays. Otherwise it has left the queue. */
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
    // A fate that came while it was sent is dropped then: the taker of an entry looks at its signal and
    // deadline once more, and a channel that is closed ends the connection as well.
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

  /** Fails every entry with what `errorFor` makes for the path of its method. */
  failAll(errorFor: (path: string) => Error): void {
    this.#failThose(() => true, errorFor);
  }

  /** The same for those that do not outlast a failed attempt to connect. */
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
