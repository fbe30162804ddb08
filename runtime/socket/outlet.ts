/**
 * The segments that one end of a socket sends, as an async iterator that its stream reads. The stream
 * requests the next segment when it has encoded the previous segment and has room for another. At this moment
 * the callback of the previous segment's write is called. A Line owns this object and uses it on the JS
 * thread.
 */
import type { OutgoingSegment } from './segment.ts';

/**
 * Receives true when the stream has taken the segment, and false when the stream will never take it.
 */
type Taken = (taken: boolean) => void;

interface Queued {
  readonly segment: OutgoingSegment;
  readonly onTaken: Taken;
}

const done: IteratorResult<OutgoingSegment> = Object.freeze({ value: undefined, done: true });

export class Outlet implements AsyncIterableIterator<OutgoingSegment> {
  readonly #queue: Queued[] = [];
  readonly #onGone: () => void;
  /** The last segment that the stream has taken, until its callback is called. */
  #last: Queued | undefined;
  /** Settles the promise of `next()` while it waits for a segment. */
  #waiting: ((result: IteratorResult<OutgoingSegment>) => void) | undefined;
  #ending = false;
  #closed = false;

  /** `onGone` is called when the stream takes no further segments although `end()` was not called. */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<OutgoingSegment>> {
    const last = this.#last;
    this.#last = undefined;
    // The callback may add segments or close this object.
    last?.onTaken(true);
    const first = this.#queue.shift();
    if (first !== undefined) return Promise.resolve(this.#give(first));
    if (this.#ending || this.#closed) {
      this.#closed = true;
      return Promise.resolve(done);
    }
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /**
   * Runs when the stream has ended. The owner closes this object later, when the socket has been notified of
   * the reason.
   */
  return(): Promise<IteratorResult<OutgoingSegment>> {
    if (!this.#closed) {
      this.#closed = true;
      this.#onGone();
    }
    return Promise.resolve(done);
  }

  /** Adds a segment. */
  push(segment: OutgoingSegment, onTaken: Taken): void {
    if (this.#closed) {
      onTaken(false);
      return;
    }
    const resolve = this.#waiting;
    if (resolve === undefined) {
      this.#queue.push({ segment, onTaken });
      return;
    }
    this.#waiting = undefined;
    resolve(this.#give({ segment, onTaken }));
  }

  /** Drops the segments that the stream has not taken. */
  clear(): void {
    for (const { onTaken } of this.#queue.splice(0)) onTaken(false);
  }

  /** Ends the iteration after the segments that were added. */
  end(): void {
    this.#ending = true;
    if (this.#queue.length === 0) this.#finish();
  }

  /**
   * Drops the segments that the stream has not taken, because it takes nothing more. The last segment that
   * the stream took counts as written, just as bytes count as written when the system has accepted them. A
   * segment that could not be encoded does not count as written.
   */
  close(): void {
    this.#closed = true;
    const last = this.#last;
    this.#last = undefined;
    last?.onTaken(last.segment.fault === undefined);
    this.clear();
    this.#finish();
  }

  #give(queued: Queued): IteratorResult<OutgoingSegment> {
    this.#last = queued;
    return { value: queued.segment, done: false };
  }

  #finish(): void {
    const resolve = this.#waiting;
    this.#waiting = undefined;
    if (resolve === undefined) return;
    this.#closed = true;
    resolve(done);
  }
}
