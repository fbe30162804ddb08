/**
 * One request on the server, from its event to its response. It is also the `context` that the handler gets:
 * what a handler does not ask for (metadata, signal, trailer) is not made. Owned by its ServerSession, on its
 * JS thread.
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
 * What only some calls have. One is made per call that has any of it, so that the others stay small: every
 * request makes a ServerCall.
 */
class Asked {
  metadata: Metadata | undefined;
  header: Metadata | undefined;
  trailer: Metadata | undefined;
  values: ContextValues | undefined;
  /** What an interceptor gave in place of the call's own. */
  adopted: AbortSignal | undefined;
  controller: AbortController | undefined;
  aborted: RpcError | undefined;
  /** That this call opened. */
  stream: OpenedStream | undefined;
  /**
   * The response, while it waits for a send slot or for memory, and how much memory it has found too little.
   */
  response: unknown;
  shortBytes = 0;
  lengths: Lengths | undefined;
  /** Of the request, when it ends with the call. */
  lease: RequestLease | undefined;
}

/** Where a call came by. */
export interface CallOwner {
  readonly peer: PeerInfo;
  /**
   * The deadline has passed, and the handler knows: the call is to be answered with `reason`. Not asked for
   * calls that opened a stream.
   */
  onLate(call: ServerCall, reason: RpcError): void;
}

/** The stream that a call opened. */
export interface OpenedStream {
  sendHeader(): void;
  onDeadline(): void;
}

export class ServerCall implements HandlerContext, DeadlineOwner {
  /** The connection that it came by. */
  readonly session: CallOwner;
  /** For the response. */
  readonly handle: number;
  readonly definition: ServerMethod;
  /** 0: none. */
  readonly deadlineMs: number;
  /** Its deadline is the server's own limit, which its client does not know. */
  limited = false;
  /** The deadline has passed, and the call been answered: what its handler gives is dropped. */
  late = false;
  /** Of a one-way method: it has been answered before its handler ran. */
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

  /** That this call opened, if it did. */
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

  /** Bytes of the arena that the response waits for; 0 for the registration of a buffer. */
  get shortBytes(): number {
    return this.#asked?.shortBytes ?? 0;
  }

  set shortBytes(bytes: number) {
    this.#more.shortBytes = bytes;
  }

  /** Throws CodecError when the response is not what it was. */
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

  /** The header if the handler has touched it. */
  get givenHeader(): Metadata | undefined {
    return this.#asked?.header;
  }

  get trailer(): Metadata {
    this.#more.trailer ??= new Metadata();
    return this.#more.trailer;
  }

  /** The trailer if the handler has touched it. */
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
   * From now on the handler sees what interceptors have made of the request. `own`: it is the request itself,
   * and no copy of it.
   */
  adopt(
    request: { metadata: Metadata; values: ContextValues; signal: AbortSignal | undefined },
    own: boolean,
  ): void {
    const more = this.#more;
    more.metadata = request.metadata;
    more.values = request.values;
    if (own) return;
    // To look at an untouched signal would make one.
    const signal = Object.getOwnPropertyDescriptor(request, 'signal');
    if (signal?.get === undefined) more.adopted = request.signal;
  }

  /** Sends these instead of what the handler has filled, which they mostly are. */
  answerWith(header: Metadata, trailer: Metadata): void {
    this.#more.header = header;
    this.#more.trailer = trailer;
  }

  timeoutMs(): number | undefined {
    return this.deadlineMs === 0 ? undefined : Math.max(0, this.deadlineMs - clockMs());
  }

  /**
   * The same when the request has just come, by the clock of that turn: to read one costs as much as an
   * interceptor.
   */
  timeoutAtFirstMs(): number | undefined {
    return this.deadlineMs === 0 ? undefined : Math.max(0, this.deadlineMs - deadlines.now);
  }

  sendHeader(): void {
    this.#asked?.stream?.sendHeader();
  }

  /** The header, to be sent now; once. */
  takeHeader(): Metadata | undefined {
    const header = this.#asked?.header;
    if (header !== undefined) this.#more.header = undefined;
    return header;
  }

  /**
   * A handler that hears of it here may do so before the client does: whatever it answers then must not be
   * taken for an answer in time.
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

  /** Answers when the deadline passes before the handler is done, whether or not that asks for its signal. */
  enforce(): void {
    this.#arm();
  }

  /** Why nobody waits any more, undefined while somebody does. */
  get aborted(): RpcError | undefined {
    return this.#asked?.aborted;
  }

  /** Tells the handler that nobody waits any more. Only the first reason counts. */
  abort(reason: RpcError): void {
    const more = this.#more;
    if (more.aborted !== undefined) return;
    more.aborted = reason;
    this.#stopTimer();
    more.controller?.abort(reason);
  }

  /** The handler is done. */
  finish(): void {
    this.#stopTimer();
  }

  /** The request's memory is to be given back when the call is over. */
  borrow(lease: BlockLease, request: object): void {
    lease.lendTo(this.method);
    this.#more.lease = new RequestLease(lease, request, this.definition.stale);
  }

  /** What was called for it is done, and nothing that it has given will be read any more. */
  over(): void {
    this.#asked?.lease?.over();
  }

  /** A handler within interceptors begins, and is done: they need not wait for it. */
  enter(): void {
    this.#asked?.lease?.enter(this.method);
  }

  leave(): void {
    this.#asked?.lease?.leave();
  }

  /** The answer waits for memory. */
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
