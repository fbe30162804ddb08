/**
 * Streams of a channel that are not open yet, because a connection, a stream slot or a send slot is missing.
 * A stream watches its deadline and signal itself, and reports when it is cancelled. The queue of a channel
 * owns this object and uses it on its JS thread.
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

  /** Returns the queue entry of a stream that is not queued yet. */
  waiter(stream: ClientStream): WaitingStream {
    return new WaitingStream(stream, this.#places);
  }

  /** Runs when the stream was cancelled. */
  forget(stream: ClientStream): void {
    const place = this.#places.get(stream);
    if (place !== undefined) this.remove(place);
  }
}
