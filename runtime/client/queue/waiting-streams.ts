/**
 * Streams of a channel that are not open yet: no connection, no place among the open streams, or no send
 * slot. A stream has a deadline and a signal of its own, and says when it is given up. Owned by the queue of
 * a channel, on its JS thread.
 */
import type { Lengths } from '../../core/lengths.ts';
import type { ClientStream } from '../stream/client-stream.ts';
import { requestLengths } from '../stream/opening.ts';
import { Waiter, WaitQueue } from './wait-queue.ts';

export class WaitingStream extends Waiter {
  readonly stream: ClientStream;
  readonly #places: Map<ClientStream, WaitingStream>;

  constructor(stream: ClientStream, places: Map<ClientStream, WaitingStream>) {
    super();
    this.stream = stream;
    this.#places = places;
  }

  get path(): string {
    return this.stream.method.path;
  }

  get endMs(): number {
    return this.stream.endMs;
  }

  get waitForReady(): boolean {
    return this.stream.waitForReady;
  }

  measure(): Lengths | undefined {
    return requestLengths(this.stream);
  }

  onWaiting(): void {
    this.#places.set(this.stream, this);
  }

  onLeaving(): void {
    this.#places.delete(this.stream);
  }

  fail(error: Error): void {
    this.stream.refuse(error);
  }

  refuse(makeError: () => Error): void {
    this.stream.refuse(makeError());
  }
}

export class WaitingStreams extends WaitQueue<WaitingStream> {
  readonly #places = new Map<ClientStream, WaitingStream>();

  /** One that does not stand in the queue yet. */
  waiter(stream: ClientStream): WaitingStream {
    return new WaitingStream(stream, this.#places);
  }

  /** The stream has given up. */
  forget(stream: ClientStream): void {
    const place = this.#places.get(stream);
    if (place !== undefined) this.remove(place);
  }
}
