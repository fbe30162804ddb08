/**
 * The outgoing requests of a stream. It reads them from the application's iterable, writes them into parts,
 * and sends as many parts as the window allows. A client stream creates this object when the stream is
 * opened.
 */
import { keepStack } from '../../core/errors/failing.ts';
import { requestFault } from '../../core/errors/failure.ts';
import type { Scope } from '../../core/scopes.ts';
import { Reason } from '../../native/native.ts';
import { Producer, type ProducerOwner } from '../../stream/producer.ts';
import { type PartPort, packedCapacity, StreamWriter } from '../../stream/stream-writer.ts';
import type { ClientMethod } from '../call/client-method.ts';
import { requestRefusal } from '../session/call-faults.ts';
import { type ClientStreams, notNow } from './client-streams.ts';
import { Pushes, skipped } from './pushes.ts';
import type { OpenStream } from './stream-row.ts';

export class Requests implements PartPort, ProducerOwner {
  readonly #stream: OpenStream;
  readonly #streams: ClientStreams;
  readonly #writer: StreamWriter;
  readonly #producer: Producer;
  readonly #pushes: Pushes;

  /** `scope` is the caller's async context. */
  constructor(stream: OpenStream, streams: ClientStreams, scope: Scope) {
    const { requestType } = stream.method;
    this.#stream = stream;
    this.#streams = streams;
    this.#pushes = new Pushes(stream);
    this.#writer = new StreamWriter(requestType, packedCapacity(streams.target), this);
    this.#producer = new Producer(this, this.#writer, scope);
  }

  /**
   * Begins to send the application's `request`, which is an iterable or one message. From this call on, the
   * owner must be ready for an end of the stream.
   */
  start(request: unknown): void {
    const { requestStream, path } = this.#stream.method;
    this.#producer.start(requestStream ? request : [request], `${path}: the requests`);
  }

  /** Runs when the server's application has read a part. */
  onAnswer(): void {
    this.#pushes.answered();
    this.#writer.onCredit();
  }

  /** Runs when a slot or memory for a part may be available. */
  onCredit(): void {
    this.#writer.onCredit();
  }

  stop(): void {
    this.#writer.stop();
    this.#producer.stop();
  }

  sendPart(
    sequence: number,
    count: number,
    flags: number,
    type: ClientMethod['requestType'],
    message: unknown,
  ): boolean {
    const stream = this.#stream;
    if (!stream.sending) return false;
    const result = this.#pushes.send(this.#streams, sequence, count, flags, type, message);
    if (result === skipped) {
      this.#writer.skip();
    } else if (result < 0 && result !== notNow) {
      const { context, target } = this.#streams;
      // The handler of a method with a single request begins when the request arrives, so the handler has not
      // run.
      const processed = stream.method.requestStream ? 'maybe' : 'no';
      const error = requestRefusal(context, target, stream.method.path, -result, processed);
      stream.giveUp(Reason.cancelled, error);
    }
    return result === 0;
  }

  onWritable(): void {
    this.#producer.resume();
  }

  onMessage(message: unknown): void {
    const { check } = this.#stream.method;
    if (check.left > 0) check.look(message);
  }

  onLastSent(): void {}

  onWriteFault(error: unknown): void {
    this.onMessageFault(error);
  }

  onMessageFault(error: unknown): void {
    this.#stream.giveUp(Reason.cancelled, requestFault(this.#stream.method.path, error, 'maybe'));
  }

  /**
   * Ends the stream with the error of the application's iterable. The application gets this error back
   * unchanged.
   */
  onSourceError(error: unknown): void {
    keepStack(error);
    this.#stream.giveUp(
      Reason.cancelled,
      error ?? new Error(`${this.#stream.method.path}: the requests failed`),
    );
  }
}
