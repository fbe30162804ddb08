/**
 * The streams of a channel, before they are open: those that wait for a connection, for a place among the open streams, or for a send slot. A bounded
 * queue beside that of unary calls, so that neither holds up the other. Owned by a channel, on its JS thread.
 */
import { queueFull, requestFault } from '../../core/failure.ts';
import type { Lengths } from '../../core/lengths.ts';
import type { SlotWaiter } from '../../lane/fabric-context.ts';
import type { ClientStream, StreamHost } from './client-stream.ts';
import type { ClientStreams } from './client-streams.ts';
import { requestLengths } from './opening.ts';

/** What streams need of their channel. */
export interface StreamChannel extends SlotWaiter {
  /** Those of the connection for new calls, undefined without one. */
  readonly openStreams: ClientStreams | undefined;
  /** A stream begins. Returns why it must not, undefined when it may. */
  admit(path: string): Error | undefined;
  /** A stream is open: with several connections it is the next one's turn. */
  onStreamStarted(): void;
  /** Something waits for a connection: `pump()` or `failAll()` follows. */
  connectForWaiting(): void;
}

export class ChannelStreams implements StreamHost {
  readonly #channel: StreamChannel;
  readonly #queueMax: number;
  /** Each with the lengths of its request, as it came. */
  readonly #waiting = new Map<ClientStream, Lengths | undefined>();

  /** `queueMax`: streams that may wait. */
  constructor(channel: StreamChannel, queueMax: number) {
    this.#channel = channel;
    this.#queueMax = queueMax;
  }

  /** Streams that wait. */
  get size(): number {
    return this.#waiting.size;
  }

  startStream(stream: ClientStream): void {
    const channel = this.#channel;
    const { path } = stream.method;
    const why = channel.admit(path);
    if (why !== undefined) {
      stream.refuse(why);
      return;
    }
    const streams = channel.openStreams;
    if (this.size === 0 && streams !== undefined && stream.open(streams)) {
      channel.onStreamStarted();
      return;
    }
    if (this.size >= this.#queueMax) {
      stream.refuse(queueFull(path, this.#queueMax));
      return;
    }
    this.#waiting.set(stream, requestLengths(stream));
    if (streams === undefined) channel.connectForWaiting();
    else if (!streams.full) streams.context.awaitSlots(channel);
  }

  forgetStream(stream: ClientStream): void {
    this.#waiting.delete(stream);
  }

  /** Opens what there is room for. */
  pump(): void {
    for (const [stream, lengths] of this.#waiting) {
      const streams = this.#channel.openStreams;
      if (streams === undefined) return;
      if (!this.#check(stream, lengths)) continue;
      if (!stream.open(streams)) {
        if (!streams.full) streams.context.awaitSlots(this.#channel);
        return;
      }
      this.#waiting.delete(stream);
      this.#channel.onStreamStarted();
    }
  }

  #check(stream: ClientStream, lengths: Lengths | undefined): boolean {
    try {
      lengths?.check();
      return true;
    } catch (cause) {
      this.#waiting.delete(stream);
      stream.refuse(requestFault(stream.method.path, cause));
      return false;
    }
  }

  /** Refuses those that do not outlast failed attempts to connect. */
  failImpatient(errorFor: (path: string) => Error): void {
    for (const stream of [...this.#waiting.keys()]) {
      if (stream.patient) continue;
      this.#waiting.delete(stream);
      stream.refuse(errorFor(stream.method.path));
    }
  }

  /** Refuses every stream with what `errorFor` makes for the path of its method. */
  failAll(errorFor: (path: string) => Error): void {
    for (const stream of [...this.#waiting.keys()]) {
      this.#waiting.delete(stream);
      stream.refuse(errorFor(stream.method.path));
    }
  }
}
