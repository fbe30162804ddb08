/**
 * The receiving direction of a stream: orders parts and passes their messages to the application. It is a
 * hand-written async iterator, because `next()` is on the hot path. Both ends of a stream use it. It runs on
 * the JS thread of its session.
 */
import { failCall, inNextTurn } from '../core/errors/failing.ts';
import { leaseOf } from '../core/lease.ts';
import { streamParts } from '../limits.ts';
import type { CopiedMessage } from './stream-memory.ts';

/** The messages of one part. */
export interface ReceivedPart {
  readonly messages: readonly unknown[];
  readonly last: boolean;
  /** The token with which the consumption of the part is reported. */
  readonly token: number;
  /** The copy of the part's message, if the message was large and was copied out of the arena. */
  readonly copied?: CopiedMessage | undefined;
}

/** The owner of the reader. */
export interface ReaderOwner {
  /** Runs when the application waits for the first message. */
  onFirstRead(): void;
  /** Runs when the application has received all messages of the part. */
  onConsumed(part: ReceivedPart): void;
  /**
   * Runs for a part that was announced with this token. Either the application waits for the part, which must
   * then be fetched, or it will never read the part, which must then be dropped.
   */
  onWanted(token: number): void;
  onUnwanted(token: number): void;
  /** Runs when the application has stopped reading. The iterator's `return()` waits for the promise. */
  onLeft(): Promise<void> | undefined;
  /**
   * Runs once, when the application has reached the end. Returns the error of the stream, or undefined when
   * the stream has succeeded.
   */
  onEnd(): unknown;
}

/** Settles the promise of `next()`. */
type Waiting = (result: IteratorResult<unknown> | Promise<never>) => void;

const noMessages: readonly unknown[] = [];
const done: IteratorResult<unknown> = Object.freeze({ value: undefined, done: true });

/** Releases a part that will not be read. */
function drop({ messages, copied }: ReceivedPart): void {
  release(messages, 0);
  copied?.forget();
}

function release(messages: readonly unknown[], from: number): void {
  for (let i = from; i < messages.length; ++i) {
    const message = messages[i];
    if (typeof message === 'object' && message !== null) leaseOf(message)?.release();
  }
}

export class StreamReader implements AsyncIterableIterator<unknown> {
  /** Number of received parts that are not consumed. */
  unread = 0;

  readonly #owner: ReaderOwner;
  readonly #endsWithLast: boolean;
  /** Received parts that are not open yet, by sequence number. */
  readonly #parts: (ReceivedPart | undefined)[] = new Array<undefined>(streamParts).fill(undefined);
  /**
   * Parts that the peer has announced, by sequence number. The peer sends each of these parts only when asked
   * for it.
   */
  readonly #announced: (number | undefined)[] = new Array<undefined>(streamParts).fill(undefined);
  /** Sequence number of the next part to open. */
  #next = 0;
  /** The open part, and the index of its next message. */
  #part: ReceivedPart | undefined;
  #messages: readonly unknown[] = noMessages;
  #at = 0;
  /** The message that the application has, and may use until it gets the next message. */
  #copied: CopiedMessage | undefined;
  #waiting: Waiting[] = [];
  #started = false;
  /** True when the part with the flag `last` has been opened. */
  #sawLast = false;
  /** True when no part follows the received parts. */
  #closed = false;
  #ended = false;
  /** True when the application has stopped reading. Messages are then dropped on arrival. */
  #left = false;

  /** `endsWithLast` says that the last part ends the stream; otherwise `close()` must end it. */
  constructor(owner: ReaderOwner, endsWithLast: boolean) {
    this.#owner = owner;
    this.#endsWithLast = endsWithLast;
  }

  /** True when all messages up to the last have been reached. */
  get complete(): boolean {
    return this.#sawLast;
  }

  /** Returns whether the application is waiting for this part. */
  waitsFor(sequence: number): boolean {
    return sequence === this.#next && (this.#waiting.length !== 0 || sequence === 0);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<unknown>> {
    if (this.#at < this.#messages.length) return Promise.resolve(this.#take());
    return this.#slowNext();
  }

  async return(): Promise<IteratorResult<unknown>> {
    if (!this.#ended) {
      this.#ended = true;
      this.leave();
      for (const settle of this.#waiting.splice(0)) settle(done);
      await this.#owner.onLeft();
    }
    return done;
  }

  /** Adds a part. Returns false when this sequence number already has a part, or cannot have a part yet. */
  arrive(sequence: number, part: ReceivedPart): boolean {
    if (this.#left) {
      drop(part);
      this.#owner.onConsumed(part);
      return true;
    }
    const place = sequence % streamParts;
    if (
      (sequence - this.#next) >>> 0 >= streamParts ||
      this.#parts[place] !== undefined ||
      (this.#sawLast && part.messages.length !== 0)
    ) {
      drop(part);
      return false;
    }
    this.#parts[place] = part;
    ++this.unread;
    if (this.#waiting.length !== 0) this.#serve();
    return true;
  }

  /**
   * Announces part `sequence`, whose large message stays at the sender until the application waits for it.
   */
  announce(sequence: number, token: number): void {
    const place = sequence % streamParts;
    const expected = (sequence - this.#next) >>> 0 < streamParts && this.#parts[place] === undefined;
    if (this.#left || !expected || this.#announced[place] !== undefined) {
      this.#owner.onUnwanted(token);
      return;
    }
    this.#announced[place] = token;
    if (this.#waiting.length !== 0) this.#want();
  }

  /**
   * Records that no more parts will arrive. The received parts are read first; then the owner's `onEnd` is
   * called.
   */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // The application may never read the stream to its end, and from here on the stream needs no memory.
    this.#copied?.forget();
    for (const part of this.#parts) part?.copied?.forget();
    if (this.#waiting.length !== 0) this.#serve();
  }

  /** Drops received and later parts. They count as consumed. */
  leave(): void {
    this.#left = true;
    release(this.#messages, this.#at);
    this.#messages = noMessages;
    this.#at = 0;
    this.#copied?.forget();
    this.#closePart();
    this.#drop();
  }

  #take(): IteratorResult<unknown> {
    const value = this.#messages[this.#at++];
    if (this.#at === this.#messages.length) {
      // The reference is cleared, so that the stream does not keep a message alive that the application
      // drops.
      this.#messages = noMessages;
      this.#at = 0;
      this.#closePart();
    }
    return { value, done: false };
  }

  #closePart(): void {
    const part = this.#part;
    if (part === undefined) return;
    this.#part = undefined;
    this.#consumed(part);
  }

  #consumed(part: ReceivedPart): void {
    --this.unread;
    this.#owner.onConsumed(part);
  }

  #drop(): void {
    while (this.#openPart()) {
      release(this.#messages, this.#at);
      this.#messages = noMessages;
      this.#at = 0;
      this.#closePart();
    }
    for (const [place, token] of this.#announced.entries()) {
      if (token === undefined) continue;
      this.#announced[place] = undefined;
      this.#owner.onUnwanted(token);
    }
    for (const [place, part] of this.#parts.entries()) {
      if (part === undefined) continue;
      this.#parts[place] = undefined;
      drop(part);
      this.#consumed(part);
    }
  }

  /** Opens the next part with messages. */
  #openPart(): boolean {
    while (!this.#sawLast) {
      const place = this.#next % streamParts;
      const part = this.#parts[place];
      if (part === undefined) return false;
      this.#parts[place] = undefined;
      this.#next = (this.#next + 1) >>> 0;
      if (part.last) this.#sawLast = true;
      if (part.messages.length !== 0) {
        this.#part = part;
        this.#copied?.forget();
        this.#copied = part.copied;
        this.#messages = part.messages;
        this.#at = 0;
        return true;
      }
      this.#consumed(part);
    }
    return false;
  }

  #available(): boolean {
    return this.#at < this.#messages.length || this.#openPart();
  }

  #slowNext(): Promise<IteratorResult<unknown>> {
    if (this.#available()) return Promise.resolve(this.#take());
    if (this.#ended) return Promise.resolve(done);
    if (!this.#started) {
      this.#started = true;
      this.#owner.onFirstRead();
    }
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#over) this.#serve();
      else this.#want();
    });
  }

  get #over(): boolean {
    return this.#closed || (this.#endsWithLast && this.#sawLast);
  }

  #serve(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (this.#available()) {
        this.#waiting.shift();
        first(this.#take());
      } else if (this.#ended) {
        this.#waiting.shift();
        first(done);
      } else if (this.#over) {
        this.#ended = true;
        this.#copied?.forget();
        this.#waiting.shift();
        const error = this.#owner.onEnd();
        if (error === undefined) first(done);
        else this.#fail(first, error);
      } else {
        this.#want();
        return;
      }
    }
  }

  /**
   * Fails the waiting read in a later event-loop iteration. Otherwise an application that opens failing
   * streams in a loop would leave no time for timers.
   */
  #fail(waiting: Waiting, error: unknown): void {
    inNextTurn(() => failCall(waiting, error));
  }

  /** Fetches the next part, for which the application waits, if the part was announced. */
  #want(): void {
    const place = this.#next % streamParts;
    const token = this.#announced[place];
    if (token === undefined) return;
    this.#announced[place] = undefined;
    this.#owner.onWanted(token);
  }
}
