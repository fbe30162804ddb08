/**
 * What one end of a socket sends: an async iterator from which its stream takes segments. The stream asks for
 * the next segment when it has encoded the last one and has room, which is when the callback of a write is
 * due. Owned by a Line, on the JS thread.
 */
import type { OutgoingSegment } from './segment.ts';

/** Called when the stream has taken the segment (true), or never will (false). */
type Taken = (taken: boolean) => void;

interface Queued {
  readonly segment: OutgoingSegment;
  readonly onTaken: Taken;
}

const done: IteratorResult<OutgoingSegment> = Object.freeze({ value: undefined, done: true });

export class Outlet implements AsyncIterableIterator<OutgoingSegment> {
  readonly #queue: Queued[] = [];
  readonly #onGone: () => void;
  /** The callback of the segment that the stream took last. */
  #onTaken: Taken | undefined;
  /** Settles the `next()` that waits for a segment. */
  #waiting: ((result: IteratorResult<OutgoingSegment>) => void) | undefined;
  #ending = false;
  #closed = false;

  /** `onGone` is called when the stream takes no further segments, although `end()` was not called. */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<OutgoingSegment>> {
    const onTaken = this.#onTaken;
    this.#onTaken = undefined;
    // May add segments, or close this object.
    onTaken?.(true);
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

  /** The stream has ended. The owner closes this object when the socket has had time to learn why. */
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

  /** No segments follow the added ones. */
  end(): void {
    this.#ending = true;
    if (this.#queue.length === 0) this.#finish();
  }

  /**
   * Drops what the stream has not got: it takes nothing more. The segment that it got last counts as taken,
   * as bytes count as written when the system has them.
   */
  close(): void {
    this.#closed = true;
    const onTaken = this.#onTaken;
    this.#onTaken = undefined;
    onTaken?.(true);
    this.clear();
    this.#finish();
  }

  #give({ segment, onTaken }: Queued): IteratorResult<OutgoingSegment> {
    this.#onTaken = onTaken;
    return { value: segment, done: false };
  }

  #finish(): void {
    const resolve = this.#waiting;
    this.#waiting = undefined;
    if (resolve === undefined) return;
    this.#closed = true;
    resolve(done);
  }
}
