/**
 * One direction of a stream, receiving: puts parts in order and hands their messages to the application, as
 * an async iterator that is written by hand, since its `next()` is the hot path. Both ends of a stream have
 * one; it knows neither of them. On the JS thread of its session.
 */
import { failCall, inNextTurn } from '../core/errors/failing.ts';
import { leaseOf } from '../core/lease.ts';
import { streamParts } from '../limits.ts';
import type { CopiedMessage } from './stream-memory.ts';

/** Messages that came together. */
export interface ReceivedPart {
  readonly messages: readonly unknown[];
  readonly last: boolean;
  /** What its consumption is to be reported with. */
  readonly token: number;
  /** Its message, if that was large and has been copied out of the arena. */
  readonly copied?: CopiedMessage | undefined;
}

/** Whose messages they are. */
export interface ReaderOwner {
  /** The application waits for the first message. */
  onFirstRead(): void;
  /** The application has got every message of the part. */
  onConsumed(part: ReceivedPart): void;
  /** The application waits for the part that was announced with this token: it may come. Or it never will. */
  onWanted(token: number): void;
  onUnwanted(token: number): void;
  /** The application wants no more. Its `return()` waits for the promise. */
  onLeft(): Promise<void> | undefined;
  /** The application comes to the end: what it ends with, undefined for well. Called once. */
  onEnd(): unknown;
}

/** Settles what `next()` has given. */
type Waiting = (result: IteratorResult<unknown> | Promise<never>) => void;

const noMessages: readonly unknown[] = [];
const done: IteratorResult<unknown> = Object.freeze({ value: undefined, done: true });

/** Of a part that nobody will read. */
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
  /** Parts that have come and are not consumed. */
  unread = 0;

  readonly #owner: ReaderOwner;
  readonly #endsWithLast: boolean;
  /** Parts that have come and are not open yet, by sequence. */
  readonly #parts: (ReceivedPart | undefined)[] = new Array<undefined>(streamParts).fill(undefined);
  /** Parts that come when they are wanted, by sequence. */
  readonly #announced: (number | undefined)[] = new Array<undefined>(streamParts).fill(undefined);
  /** Sequence of the next one to open. */
  #next = 0;
  /** The open part, and the message that is next. */
  #part: ReceivedPart | undefined;
  #messages: readonly unknown[] = noMessages;
  #at = 0;
  /** The application's, which may hold it until it has the next one. */
  #copied: CopiedMessage | undefined;
  #waiting: Waiting[] = [];
  #started = false;
  /** The part with `last` has been opened. */
  #sawLast = false;
  /** No part follows those that are here. */
  #closed = false;
  #ended = false;
  /** Nobody reads: messages are dropped as they come. */
  #left = false;

  /** `endsWithLast`: the last part ends it; otherwise `close()` does, too. */
  constructor(owner: ReaderOwner, endsWithLast: boolean) {
    this.#owner = owner;
    this.#endsWithLast = endsWithLast;
  }

  /** Every message up to the last has been reached. */
  get complete(): boolean {
    return this.#sawLast;
  }

  /** The application can do nothing before it has this part. */
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

  /** Puts a part in its place. False: there is one with this sequence, or there cannot be one yet. */
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

  /** Part `sequence` has a large message, which stays where it is until the application waits for it. */
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

  /** No part will come any more. What is here is read first, then comes the owner's `onEnd`. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // It may never be read to its end, and nothing more waits for memory.
    this.#copied?.forget();
    for (const part of this.#parts) part?.copied?.forget();
    if (this.#waiting.length !== 0) this.#serve();
  }

  /** Drops what has come and what will come. Parts count as consumed. */
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
      // The application's from now on: memory of a message that it drops must not hang on the stream.
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

  /** Opens the next part that has messages. */
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

  /** Not at once: a loop of streams that cannot be opened must leave time for timers. */
  #fail(waiting: Waiting, error: unknown): void {
    inNextTurn(() => failCall(waiting, error));
  }

  /** The application waits for the next part: if it was announced, it is time. */
  #want(): void {
    const place = this.#next % streamParts;
    const token = this.#announced[place];
    if (token === undefined) return;
    this.#announced[place] = undefined;
    this.#owner.onWanted(token);
  }
}
