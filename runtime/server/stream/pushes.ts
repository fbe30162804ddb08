/**
 * The requests of a stream on the server. They arrive as PUSHes and are passed to the handler in order, by an
 * async iterator. A ServerStream owns this object and uses it on its JS thread.
 */
import type { MessageType } from '../../codec/types.ts';
import { type ReaderOwner, type ReceivedPart, StreamReader } from '../../stream/stream-reader.ts';
import { undecodableRequest } from '../call-faults.ts';
import type { StreamTable } from './stream-table.ts';

/** The stream to which the requests belong. */
export interface PushesOwner {
  /** Runs when the client has broken the protocol. */
  fault(why: string): void;
  /** The reason why the stream was cancelled, or undefined. */
  readonly cancelled: unknown;
}

export class Pushes implements ReaderOwner {
  readonly reader: StreamReader;
  /**
   * True when requests are expected in PUSHes. This is the case when the method has a stream of requests, or
   * when its single request did not fit into the OPEN.
   */
  taken = false;
  readonly #streams: StreamTable;
  readonly #requestType: MessageType<unknown, never>;
  readonly #owner: PushesOwner;

  constructor(streams: StreamTable, requestType: MessageType<unknown, never>, owner: PushesOwner) {
    this.#streams = streams;
    this.#requestType = requestType;
    this.#owner = owner;
    this.reader = new StreamReader(this, true);
  }

  onPush(at: number, handle: number): void {
    const { incoming } = this.#streams;
    const { sequence, last } = incoming.header;
    if (!this.taken) {
      incoming.whole.discard(at);
      this.#streams.answerPush(handle);
      if (incoming.header.count !== 0) this.#owner.fault('a message for a method that takes one only');
      return;
    }
    let part: ReceivedPart;
    try {
      const messages = incoming.messages(at, this.#requestType);
      part = { messages, last, token: handle, copied: incoming.copied };
    } catch (error) {
      this.#streams.answerPush(handle);
      this.#owner.fault(undecodableRequest(error));
      return;
    }
    if (!this.reader.arrive(sequence, part)) {
      this.#streams.answerPush(handle);
      this.#owner.fault(`part ${sequence} came twice, too early, or after the last`);
    }
  }

  /** Handles a PUSH whose message waits to be fetched. Returns false when this stream does not expect it. */
  onPushWaits(handle: number, sequence: number): boolean {
    if (this.taken) this.reader.announce(sequence, handle);
    return this.taken;
  }

  onFirstRead(): void {}

  /** Answers the PUSH, which allows the client to send more. */
  onConsumed(part: ReceivedPart): void {
    this.#streams.answerPush(part.token);
  }

  onWanted(handle: number): void {
    const { context, target } = this.#streams.session;
    context.native.want(target.session, handle);
  }

  onUnwanted(handle: number): void {
    this.#streams.answerPush(handle);
  }

  /** Runs when the handler stops reading. Messages that still arrive are dropped. */
  onLeft(): undefined {}

  onEnd(): unknown {
    return this.#owner.cancelled;
  }
}
