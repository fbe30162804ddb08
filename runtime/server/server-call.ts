/**
 * A unary call on the server, or the OPEN of a stream, from its event to its response. It is also the
 * `context` of the handler. Metadata, signal and trailer are created only when the handler reads them. A
 * ServerSession owns this object and uses it on the JS thread of the session.
 */

import { deadlines } from '../boundary/time/deadlines.ts';
import type { DeadlineOwner } from '../boundary/time/timer-wheel.ts';
import { clockMs } from '../clock.ts';
import { ContextValues } from '../core/context-values.ts';
import type { RpcError } from '../core/errors/rpc-error.ts';
import type { HandlerContext } from '../core/handler-context.ts';
import type { BlockLease } from '../core/lease.ts';
import { type Lengths, lengthsOf } from '../core/lengths.ts';
import { Metadata } from '../core/metadata.ts';
import { decodeMetadata } from '../core/metadata-wire.ts';
import type { PeerInfo } from '../core/peer.ts';
import { deadlinePassed, limitPassed } from './call-faults.ts';
import { handlerController } from './handler-signal.ts';
import { RequestLease } from './request-lease.ts';
import type { ServerMethod } from './server-method.ts';

/**
 * Properties that only some calls need. They are in a separate object, so that a ServerCall, which every
 * request creates, stays small.
 */
class Asked {
  metadata: Metadata | undefined;
  header: Metadata | undefined;
  trailer: Metadata | undefined;
  values: ContextValues | undefined;
  /** The signal that an interceptor has given the request instead of the call's own signal. */
  adopted: AbortSignal | undefined;
  controller: AbortController | undefined;
  aborted: RpcError | undefined;
  /** The stream that this call has opened. */
  stream: OpenedStream | undefined;
  /** The response while it waits for a send slot or for memory, and the amount of memory that was missing. */
  response: unknown;
  shortBytes = 0;
  lengths: Lengths | undefined;
  /** The lease of the request, when the lease ends with the call. */
  lease: RequestLease | undefined;
  notRun = false;
}

/** The session or connection of a call. */
export interface CallOwner {
  readonly peer: PeerInfo;
  /**
   * Runs when the deadline has passed and the handler has been aborted. It must answer the call with
   * `reason`. It does not run for calls that opened a stream.
   */
  onLate(call: ServerCall, reason: RpcError): void;
  /**
   * Called when a call must wait before its handler may begin (`deferred` is true), and again when the
   * handler begins. Returns false when the call is over, so that its handler must not begin.
   */
  defer(call: ServerCall, deferred: boolean): boolean;
}

/** The stream that a call has opened. */
export interface OpenedStream {
  sendHeader(): void;
  onDeadline(): void;
}

export class ServerCall implements HandlerContext, DeadlineOwner {
  /** The session of the call. */
  readonly session: CallOwner;
  /** Handle for the response. */
  readonly handle: number;
  readonly definition: ServerMethod;
  /** Deadline of the call, or 0 when it has no deadline. */
  readonly deadlineMs: number;
  /** True when the deadline is the server's own limit, which the client does not know. */
  limited = false;
  /**
   * True when the deadline has passed and the call has been answered. The result of the handler is then
   * dropped.
   */
  late = false;
  /** True for a call of a one-way method that was answered before its handler ran. */
  accepted = false;
  previous: ServerCall | undefined;
  next: ServerCall | undefined;

  readonly #metadataBytes: Uint8Array | undefined;
  #asked: Asked | undefined;
  #timer = -1;

  constructor(
    session: CallOwner,
    handle: number,
    definition: ServerMethod,
    deadlineMs: number,
    metadataBytes: Uint8Array | undefined,
  ) {
    this.session = session;
    this.handle = handle;
    this.definition = definition;
    this.deadlineMs = deadlineMs;
    this.#metadataBytes = metadataBytes;
  }

  get #more(): Asked {
    this.#asked ??= new Asked();
    return this.#asked;
  }

  /** The stream that this call has opened, if any. */
  set stream(stream: OpenedStream) {
    this.#more.stream = stream;
  }

  /** The response, while it waits to be sent. */
  get response(): unknown {
    return this.#asked?.response;
  }

  set response(response: unknown) {
    this.#more.response = response;
    this.#more.lengths = lengthsOf(this.definition.responseType, response);
  }

  /**
   * Bytes of arena memory that the response waits for, or 0 when it waits for the registration of a buffer.
   */
  get shortBytes(): number {
    return this.#asked?.shortBytes ?? 0;
  }

  set shortBytes(bytes: number) {
    this.#more.shortBytes = bytes;
  }

  /** Throws CodecError when the length of a `bytes` value of the waiting response has changed. */
  checkResponse(): void {
    this.#asked?.lengths?.check();
  }

  get peer(): PeerInfo {
    return this.session.peer;
  }

  get method(): string {
    return this.definition.path;
  }

  get metadata(): Metadata {
    const bytes = this.#metadataBytes;
    this.#more.metadata ??= bytes === undefined ? new Metadata() : decodeMetadata(bytes, 0, bytes.byteLength);
    return this.#more.metadata;
  }

  get header(): Metadata {
    this.#more.header ??= new Metadata();
    return this.#more.header;
  }

  /** The header, if the handler has used it. */
  get givenHeader(): Metadata | undefined {
    return this.#asked?.header;
  }

  get trailer(): Metadata {
    this.#more.trailer ??= new Metadata();
    return this.#more.trailer;
  }

  /** The trailer, if the handler has used it. */
  get givenTrailer(): Metadata | undefined {
    return this.#asked?.trailer;
  }

  get values(): ContextValues {
    this.#more.values ??= new ContextValues();
    return this.#more.values;
  }

  get signal(): AbortSignal {
    const more = this.#more;
    if (more.adopted !== undefined) return more.adopted;
    if (more.controller === undefined) {
      more.controller = handlerController();
      if (more.aborted !== undefined) more.controller.abort(more.aborted);
      else this.#arm();
    }
    return more.controller.signal;
  }

  /**
   * Lets the handler see the changes that interceptors have made to the request. `own` is true when `request`
   * is the original request, not a copy.
   */
  adopt(
    request: { metadata: Metadata; values: ContextValues; signal: AbortSignal | undefined },
    own: boolean,
  ): void {
    const more = this.#more;
    more.metadata = request.metadata;
    more.values = request.values;
    if (own) return;
    // The property descriptor is read, because reading the property itself would create a signal.
    const signal = Object.getOwnPropertyDescriptor(request, 'signal');
    if (signal?.get === undefined) more.adopted = request.signal;
  }

  /**
   * Sends this header and trailer in place of those that the handler has filled. Usually both are the same
   * objects.
   */
  answerWith(header: Metadata, trailer: Metadata): void {
    this.#more.header = header;
    this.#more.trailer = trailer;
  }

  timeoutMs(): number | undefined {
    return this.deadlineMs === 0 ? undefined : Math.max(0, this.deadlineMs - clockMs());
  }

  /**
   * Does the same as timeoutMs(), for a request that has just arrived. It uses the time of the current
   * event-loop iteration (boundary/time/deadlines.ts), because reading the clock costs as much as an
   * interceptor.
   */
  timeoutAtFirstMs(): number | undefined {
    return this.deadlineMs === 0 ? undefined : Math.max(0, this.deadlineMs - deadlines.now);
  }

  sendHeader(): void {
    this.#asked?.stream?.sendHeader();
  }

  /** Returns the header that is to be sent now. A second call returns undefined. */
  takeHeader(): Metadata | undefined {
    const header = this.#asked?.header;
    if (header !== undefined) this.#more.header = undefined;
    return header;
  }

  /**
   * Runs when the call's timer fires. The handler may learn of the deadline before the client's own timer
   * fires. Therefore the call is marked as late, so that the handler's result is not used as an answer in
   * time.
   */
  onDeadline(): void {
    this.#timer = -1;
    const asked = this.#asked;
    if (asked?.aborted !== undefined) return;
    if (asked?.stream !== undefined) {
      asked.stream.onDeadline();
      return;
    }
    const reason = this.deadlineError();
    this.late = true;
    this.abort(reason);
    this.session.onLate(this, reason);
  }

  deadlineError(): RpcError {
    return this.limited ? limitPassed(this.method) : deadlinePassed(this.method);
  }

  /**
   * Enforces the deadline. The call is answered when the deadline passes before the handler has finished,
   * even if the handler has not read its signal.
   */
  enforce(): void {
    this.#arm();
  }

  /** The reason why the call was aborted, or undefined while the client waits for the call. */
  get aborted(): RpcError | undefined {
    return this.#asked?.aborted;
  }

  /**
   * True when an error says that the handler has not run and will not: while `authorize` decides, and after
   * it has not allowed the call.
   */
  get notRun(): boolean {
    return this.#asked?.notRun ?? false;
  }

  set notRun(notRun: boolean) {
    this.#more.notRun = notRun;
  }

  /** Aborts the handler. Only the first reason counts. */
  abort(reason: RpcError): void {
    const more = this.#more;
    if (more.aborted !== undefined) return;
    more.aborted = reason;
    this.#stopTimer();
    more.controller?.abort(reason);
  }

  /** Runs when the handler has finished. */
  finish(): void {
    this.#stopTimer();
  }

  /** Lends the request's memory to the call. The memory is released when the call is over. */
  borrow(lease: BlockLease, request: object): void {
    lease.lendTo(this.method);
    this.#more.lease = new RequestLease(lease, request, this.definition.stale);
  }

  /** Runs when all functions of the call have finished and their results will not be read any more. */
  over(): void {
    this.#asked?.lease?.over();
  }

  /**
   * Runs when a handler inside interceptors begins. The handler may run longer than the interceptors, which
   * need not wait for it.
   */
  enter(): void {
    this.#asked?.lease?.enter(this.method);
  }

  leave(): void {
    this.#asked?.lease?.leave();
  }

  /** Runs when the response waits for memory. */
  yieldMemory(): void {
    this.#asked?.lease?.yield();
  }

  #arm(): void {
    if (this.deadlineMs !== 0 && this.#timer === -1) this.#timer = deadlines.add(this.deadlineMs, this, 0);
  }

  #stopTimer(): void {
    if (this.#timer === -1) return;
    deadlines.remove(this.#timer);
    this.#timer = -1;
  }
}
