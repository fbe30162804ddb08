/**
 * A stream on the server, from its OPEN to the response that ends it. It passes the requests to an async
 * iterator for the handler, and sends the handler's messages as responses to PULLs. ServerStreams owns this
 * object and uses it on the JS thread of the session.
 */

import { noSlot } from '../../boundary/outgoing/outgoing.ts';
import { deadlines } from '../../boundary/time/deadlines.ts';
import type { DeadlineOwner } from '../../boundary/time/timer-wheel.ts';
import type { MessageType } from '../../codec/types.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../../core/errors/status.ts';
import { promiseOf, textOf } from '../../core/foreign.ts';
import { encodeResponseMetadata } from '../../core/metadata-wire.ts';
import { newScope } from '../../core/scopes.ts';
import { Reason, Use } from '../../native/native.ts';
import { PartKind, partHeader, withEntries } from '../../stream/part-header.ts';
import { Producer, type ProducerOwner } from '../../stream/producer.ts';
import { type PartPort, packedCapacity, StreamWriter } from '../../stream/stream-writer.ts';
import type { ServerCall } from '../server-call.ts';
import type { StreamMethod } from '../server-method.ts';
import { Pulls } from './pulls.ts';
import { Pushes, type PushesOwner } from './pushes.ts';
import type { StreamTable } from './stream-table.ts';

const noTimer = -1;
const ignore = (): void => undefined;

export class ServerStream implements PartPort, PushesOwner, ProducerOwner, DeadlineOwner {
  readonly number: number;
  /** The call of the OPEN, which is also the handler's context. */
  readonly call: ServerCall;

  readonly #streams: StreamTable;
  readonly #method: StreamMethod;
  readonly #pushes: Pushes;
  readonly #writer: StreamWriter;
  readonly #producer: Producer;
  readonly #pulls = new Pulls();
  /**
   * Async context of the handler. It is also used when the next message is requested from the handler's
   * iterable.
   */
  readonly #scope = newScope();
  #timer = noTimer;
  /** True when the handler has thrown. The error is sent after the messages that came before it. */
  #failed = false;
  #error: unknown;
  /** The reason why the stream was cancelled. */
  #cancelled: RpcError | undefined;
  #over = false;
  /**
   * Number of activities of the handler that have not ended. A handler that continues after the end of its
   * stream still counts as running.
   */
  #busy = 0;

  constructor(streams: StreamTable, number: number, method: StreamMethod, call: ServerCall) {
    this.number = number;
    this.call = call;
    call.stream = this;
    this.#streams = streams;
    this.#method = method;
    this.#pushes = new Pushes(streams, method.requestType, this);
    const capacity = packedCapacity(streams.session.target);
    this.#writer = new StreamWriter(method.responseType, capacity, this);
    this.#producer = new Producer(this, this.#writer, this.#scope);
  }

  /** Starts the handler. `messages` contains the messages of the OPEN. */
  begin(messages: readonly unknown[]): void {
    if (this.call.deadlineMs !== 0) this.#timer = deadlines.add(this.call.deadlineMs, this, 0);
    if (this.#method.requestStream) {
      this.#pushes.taken = true;
      this.#run(this.#pushes.reader);
    } else if (messages.length !== 0) {
      this.#run(messages[0]);
    } else {
      this.#awaitRequest();
    }
  }

  #awaitRequest(): void {
    this.#pushes.taken = true;
    this.#pushes.reader.next().then((first) => {
      if (this.#over) return;
      if (first.done) this.fault('no message for a method that takes one');
      else this.#run(first.value);
    }, ignore);
  }

  // --- requests in

  onPush(at: number, handle: number): void {
    this.#pushes.onPush(at, handle);
  }

  onPushWaits(handle: number, sequence: number): boolean {
    return this.#pushes.onPushWaits(handle, sequence);
  }

  get cancelled(): unknown {
    return this.#cancelled;
  }

  // --- responses out

  onPull(handle: number, sequence: number, awaited: boolean): void {
    if (!this.#pulls.add(sequence, handle, awaited)) {
      this.#streams.answerPull(handle, this.number, sequence);
      this.fault(`part ${sequence} was asked for twice, or too early`);
      return;
    }
    this.#writer.onCredit();
  }

  sendPart(
    sequence: number,
    count: number,
    flags: number,
    type: MessageType<unknown, unknown>,
    message: unknown,
  ): boolean {
    const handle = this.#pulls.handleOf(sequence);
    const { context, responder, admission } = this.#streams.session;
    if (handle === undefined || this.#over || responder.down) return false;
    const over = admission.exceeded();
    if (over !== undefined) {
      this.fault(over, Status.RESOURCE_EXHAUSTED);
      return false;
    }
    let header = partHeader(this.number, sequence, count, PartKind.pull, flags);
    if (sequence === 0 && this.call.givenHeader !== undefined) {
      const withHeader = this.#withHeader(header);
      if (withHeader === undefined) return false;
      header = withHeader;
    }
    const { outgoing } = context;
    const { submission } = this.#streams;
    submission.call = handle;
    submission.metadata = header;
    submission.use = this.#pulls.isAwaited(sequence) ? Use.response : Use.part;
    const result = outgoing.submit(submission, type, message);
    if (result === -Reason.noMemory && this.#waitsForMemory(sequence)) return false;
    if (result === noSlot) {
      this.#streams.stalled.awaitSlot(this, 'slot');
      return false;
    }
    if (result < 0) {
      const text = responder.refusalText(this.call, -result);
      this.#end(new RpcError(Status.RESOURCE_EXHAUSTED, text));
      return false;
    }
    responder.sent();
    this.#streams.stalled.moved(this);
    if (sequence === 0) this.call.takeHeader();
    this.#pulls.done(sequence);
    return true;
  }

  /**
   * Returns whether the part must wait for memory. A part for which the client's application does not wait is
   * sent empty. The client requests it again when the application waits for it.
   */
  #waitsForMemory(sequence: number): boolean {
    if (this.#pulls.isAwaited(sequence)) return this.#streams.stalled.awaitMemory(this);
    for (let next = sequence; ; next = (next + 1) >>> 0) {
      const handle = this.#pulls.handleOf(next);
      if (handle === undefined) return true;
      this.#pulls.done(next);
      this.#streams.answerPull(handle, this.number, next, 0);
      this.#writer.skip();
    }
  }

  /**
   * Returns the part header of an empty part, followed by the handler's header. Returns undefined when the
   * handler's header is too large; the stream has ended then.
   */
  #withHeader(header: Uint8Array): Uint8Array | undefined {
    let why: string;
    try {
      const entries = encodeResponseMetadata(this.call.givenHeader, undefined);
      const all = entries === undefined ? header : withEntries(header, entries);
      const { eagerBytes } = this.#streams.session.target;
      if (all.byteLength <= eagerBytes) return all;
      why = `${all.byteLength} bytes, but this connection's slots hold ${eagerBytes} (slotBytes)`;
    } catch (error) {
      why = textOf(error);
    }
    this.call.takeHeader();
    this.#end(new RpcError(Status.RESOURCE_EXHAUSTED, `${this.call.method}: the header: ${why}`));
    return undefined;
  }

  /** The header is sent in a separate part, so that it does not reduce the room for messages. */
  onFirstMessage(): void {
    if (this.call.givenHeader !== undefined) this.#writer.lead();
  }

  sendHeader(): void {
    this.#writer.lead();
  }

  retry(): void {
    this.#writer.onCredit();
  }

  onWritable(): void {
    this.#producer.resume();
  }

  onLastSent(): void {
    this.#end(this.#failed ? this.#error : undefined);
  }

  onWriteFault(error: unknown): void {
    this.#end(error);
  }

  onMessageFault(error: unknown): void {
    this.onSourceError(error);
  }

  /** Runs when the handler has thrown. Its earlier messages are still sent. */
  onSourceError(error: unknown): void {
    if (this.#over) {
      this.onLateError(error);
      return;
    }
    this.#failed = true;
    this.#error = error;
    this.#writer.end();
  }

  /** An error after the end of the stream cannot be sent to the client. */
  onLateError(error: unknown): void {
    this.#streams.session.responder.report(this.call, error);
  }

  onMessage(message: unknown): void {
    const { check } = this.#method;
    if (check.left > 0) check.look(message);
  }

  // --- the handler

  #run(argument: unknown): void {
    const { handler, self } = this.#method;
    let result: unknown;
    let promise: Promise<unknown> | undefined;
    try {
      result = this.#scope.run(handler, self, argument, this.call);
      promise = promiseOf(result);
    } catch (error) {
      this.onSourceError(error);
      return;
    }
    if (promise !== undefined) this.#await(promise.then(this.#onResult, this.#onRejected));
    else this.#onResult(result);
  }

  readonly #onResult = (result: unknown): void => {
    if (this.#over) return;
    if (this.#method.responseStream) {
      this.#producer.start(result, `${this.call.method}: what the handler returned`);
      return;
    }
    try {
      this.onMessage(result);
      this.#writer.write(result);
    } catch (error) {
      this.onSourceError(error);
      return;
    }
    this.#writer.end();
  };

  readonly #onRejected = (error: unknown): void => this.onSourceError(error);

  /**
   * Counts the handler as running until `done` settles. A rejection of `done` does not make the handler fail.
   */
  #await(done: PromiseLike<unknown> | undefined): void {
    if (done === undefined) return;
    ++this.#busy;
    void done.then(() => {
      --this.#busy;
      this.#leaveHandler();
    });
  }

  #leaveHandler(): void {
    if (this.#over && this.#busy === 0) this.#streams.onHandlerDone();
  }

  // --- ending

  onDeadline(): void {
    this.#timer = noTimer;
    const error = this.call.deadlineError();
    this.#abort(error);
    this.#end(error);
  }

  /**
   * Ends the stream with an error, because the client has broken the protocol of this stream or has exceeded
   * a limit.
   */
  fault(why: string, code: StatusCode = Status.INTERNAL): void {
    const error = new RpcError(code, `${this.call.method}: ${why}`);
    this.#abort(error);
    this.#end(error);
  }

  /** Ends the stream when the client has cancelled it or its connection was lost. */
  cancel(reason: RpcError): void {
    this.#abort(reason);
    this.#finish();
    this.call.finish();
  }

  /** Aborts the handler. */
  #abort(reason: RpcError): void {
    if (this.#over) return;
    this.#cancelled = reason;
    this.call.abort(reason);
  }

  /** Answers the OPEN with an error, or with success when `error` is undefined. */
  #end(error: unknown): void {
    if (this.#over) return;
    const failed = this.#failed || error !== undefined;
    this.#finish();
    const { responder } = this.#streams.session;
    if (failed) responder.fail(this.call, error);
    else responder.answer(this.call, undefined);
  }

  /** Answers all waiting parts. */
  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#timer !== noTimer) deadlines.remove(this.#timer);
    this.#timer = noTimer;
    this.#streams.leave(this);
    this.#writer.stop();
    this.#pushes.reader.leave();
    for (const { sequence, handle } of this.#pulls.takeAll())
      this.#streams.answerPull(handle, this.number, sequence);
    this.#await(this.#producer.stop());
    this.#pushes.reader.close();
    this.#leaveHandler();
  }
}
