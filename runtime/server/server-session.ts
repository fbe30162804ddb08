/**
 * The server half of a session: takes each request to its handler and the handler's result back. Sync handlers answer within the
 * event's callback; async ones are kept in a list until they are done. Owned by a server, on its JS thread.
 */

import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { promiseOf, textOf } from '../core/foreign.ts';
import type { FabricContext, SessionOwner } from '../lane/fabric-context.ts';
import { Incoming } from '../lane/incoming.ts';
import type { Target } from '../lane/submission.ts';
import { Ev } from '../native.ts';
import type { HandlerTable } from './handlers.ts';
import type { Load } from './load.ts';
import { Responder } from './responder.ts';
import { type CallOwner, ServerCall } from './server-call.ts';

/** A request with less time left than this is never started without a look at the clock. */
const hurryUs = 100_000;

/** What unary calls and streams of a session share. */
export interface Shared {
  readonly context: FabricContext;
  readonly target: Target;
  readonly session: CallOwner;
  readonly handlers: HandlerTable;
  readonly responder: Responder;
  readonly load: Load;
  /** Counts a stream that is to be opened. */
  onOpening(): void;
  /** Why what was counted last may not be started, undefined when it may. */
  refusal(path: string): RpcError | undefined;
}

/** Gets what belongs to streams. */
export interface ServerParts {
  onPart(at: number): void;
  onPartWaits(at: number): void;
  /** `status`: CANCELLED or DEADLINE_EXCEEDED. */
  onCancelled(handle: number, status: number): void;
  onDown(reason: string): void;
  /** Streams open now. */
  readonly size: number;
}

export interface ServerSessionListener {
  onHandlerError(error: unknown, method: string): void;
  onSessionDown(session: ServerSession, reason: string): void;
}

export class ServerSession implements SessionOwner, CallOwner {
  readonly target: Target;
  readonly peer: string;
  /** Calls so far: unary ones, and streams. */
  calls = 0;
  /** Its streams, if it may have any. */
  parts: ServerParts | undefined;

  readonly #context: FabricContext;
  readonly #handlers: HandlerTable;
  readonly #listener: ServerSessionListener;
  readonly #load: Load;
  readonly #responder: Responder;
  readonly #incoming: Incoming;
  readonly #events: Int32Array;
  /** Requests taken without a look at the clock. */
  #unclocked = 0;
  /** Parts of streams so far. */
  #partCount = 0;
  /** Calls after so many are turned away, and why. */
  #last = Infinity;
  #closed = '';
  /** Calls of async handlers, newest first. */
  #first: ServerCall | undefined;

  constructor(
    context: FabricContext,
    target: Target,
    peer: string,
    handlers: HandlerTable,
    load: Load,
    listener: ServerSessionListener,
  ) {
    this.target = target;
    this.peer = peer;
    this.#context = context;
    this.#handlers = handlers;
    this.#load = load;
    this.#listener = listener;
    this.#responder = new Responder(context, target, (error, method) =>
      listener.onHandlerError(error, method),
    );
    this.#events = context.native.events;
    this.#incoming = new Incoming(context.native, target.session);
    context.attach(this);
  }

  /** There are calls whose handlers have not answered yet. */
  get busy(): boolean {
    return this.#first !== undefined || (this.parts !== undefined && this.parts.size > 0);
  }

  /** Changes with every request, of whatever kind. */
  get requests(): number {
    return this.calls + this.#partCount;
  }

  /** Calls after the first `last` of this session answer UNAVAILABLE without being run; the others go on. */
  turnAway(reason: string, last: number): void {
    this.#closed = reason;
    this.#last = last;
  }

  /** What its streams work with. */
  get shared(): Shared {
    return {
      session: this,
      target: this.target,
      context: this.#context,
      handlers: this.#handlers,
      responder: this.#responder,
      load: this.#load,
      onOpening: () => {
        ++this.calls;
      },
      refusal: (path) => this.#refusal(path),
    };
  }

  onPartWaits(at: number): void {
    if (this.parts !== undefined) this.parts.onPartWaits(at);
    else this.#context.native.want(this.target.session, this.#events[at + Ev.call]!);
  }

  onRequest(at: number): void {
    if (this.#events[at + Ev.sent] !== 0 && this.parts !== undefined) {
      ++this.#partCount;
      this.parts.onPart(at);
      return;
    }
    ++this.calls;
    const handle = this.#events[at + Ev.call]!;
    const method = this.#handlers.find(this.#events[at + Ev.method]!);
    if (method === undefined) {
      this.#unimplemented(at, handle);
      return;
    }
    if (this.calls > this.#last || this.#load.full) {
      this.#incoming.discard(at);
      const { code, rawMessage } = this.#refusal(method.path)!;
      this.#responder.refuse(handle, code, rawMessage);
      return;
    }
    const givenUs = this.#events[at + Ev.timeoutUs]! >>> 0;
    const timeoutUs = this.#handlers.limits.limitUs(givenUs);
    let deadlineMs = 0;
    if (timeoutUs !== 0) {
      // Counted from the batch's start, as native code did; handlers of the same batch may have taken long since.
      deadlineMs = this.#context.batchMs + timeoutUs / 1000;
      if (this.#mayHavePassed(timeoutUs) && performance.now() >= deadlineMs) {
        this.#incoming.discard(at);
        const text = `${method.path}: the deadline passed before the handler started`;
        this.#responder.refuse(handle, Status.DEADLINE_EXCEEDED, text);
        return;
      }
    }
    const metadata = this.#events[at + Ev.metadataBytes] === 0 ? undefined : this.#incoming.metadataBytes(at);
    if (typeof metadata === 'string') {
      this.#incoming.discard(at);
      this.#responder.refuse(handle, Status.INTERNAL, `${method.path}: malformed metadata: ${metadata}`);
      return;
    }
    let request: unknown;
    try {
      request = this.#incoming.message(at, method.requestType, undefined);
    } catch (error) {
      const why = textOf(error);
      this.#responder.refuse(
        handle,
        Status.INTERNAL,
        `${method.path}: the request cannot be decoded: ${why}`,
      );
      return;
    }
    const call = new ServerCall(this, handle, method, deadlineMs, metadata);
    call.limited = timeoutUs !== givenUs;
    this.#run(call, request);
  }

  onCancelled(at: number): void {
    const handle = this.#events[at + Ev.call]!;
    let call = this.#first;
    while (call !== undefined && call.handle !== handle) call = call.next;
    if (call === undefined) {
      this.#responder.forget(handle);
      this.parts?.onCancelled(handle, this.#events[at + Ev.method]!);
      return;
    }
    const late = this.#events[at + Ev.method] === Status.DEADLINE_EXCEEDED;
    call.abort(
      late
        ? new RpcError(Status.DEADLINE_EXCEEDED, `${call.method}: the deadline passed`)
        : new RpcError(Status.CANCELLED, `${call.method}: cancelled by the client`),
    );
  }

  onLate(call: ServerCall, reason: RpcError): void {
    if (!call.accepted) this.#responder.fail(call, reason);
  }

  onDown(reason: string): void {
    this.#responder.stop();
    for (let call = this.#first; call !== undefined; call = call.next) {
      call.abort(new RpcError(Status.CANCELLED, `${call.method}: the connection was lost: ${reason}`));
    }
    this.parts?.onDown(reason);
    this.#listener.onSessionDown(this, reason);
  }

  /** Events of calls that this side has made; a server makes none. */
  onReleased(): void {}

  onSettled(at: number): void {
    this.#incoming.discard(at);
  }

  onFailed(): void {}

  /**
   * Whether a look at the clock is due. It costs as much as decoding a small request, so a request with time to spare gets one only
   * now and then: after a few handlers that each blocked for long, one may start late; none that was in a hurry.
   */
  #mayHavePassed(timeoutUs: number): boolean {
    if (this.#context.firstOfBatch) return false;
    return timeoutUs < hurryUs || (++this.#unclocked & 3) === 0;
  }

  /** Before anything is decoded: the caller may try elsewhere at once. */
  #refusal(path: string): RpcError | undefined {
    if (this.calls > this.#last) return new RpcError(Status.UNAVAILABLE, `${path}: ${this.#closed}`);
    if (this.#load.full) return new RpcError(Status.RESOURCE_EXHAUSTED, `${path}: ${this.#load.text}`);
    return undefined;
  }

  #unimplemented(at: number, handle: number): void {
    this.#incoming.discard(at);
    const part = this.#events[at + Ev.sent] !== 0;
    const why = this.#handlers.missing(this.#events[at + Ev.method]!, part);
    this.#responder.refuse(handle, Status.UNIMPLEMENTED, why);
  }

  #run(call: ServerCall, request: unknown): void {
    const { handler, self, oneWay } = call.definition;
    // The caller learns that the request is here, and no more. Handlers that run on count as any others, so a flood is turned away.
    if (oneWay) this.#responder.accept(call);
    let result: unknown;
    let promise: Promise<unknown> | undefined;
    try {
      result = handler.call(self, request, call);
      promise = promiseOf(result);
    } catch (error) {
      this.#responder.fail(call, error);
      return;
    }
    if (promise !== undefined) {
      this.#link(call);
      if (call.limited) call.enforce();
      void this.#finish(call, promise);
    } else {
      this.#responder.answer(call, result);
    }
  }

  async #finish(call: ServerCall, result: Promise<unknown>): Promise<void> {
    let response: unknown;
    try {
      response = await result;
    } catch (error) {
      this.#unlink(call);
      if (call.late) this.#responder.report(call, error);
      else this.#responder.fail(call, error);
      return;
    }
    this.#unlink(call);
    if (!call.late) this.#responder.answer(call, response);
  }

  #link(call: ServerCall): void {
    ++this.#load.running;
    call.next = this.#first;
    if (this.#first !== undefined) this.#first.previous = call;
    this.#first = call;
  }

  #unlink(call: ServerCall): void {
    --this.#load.running;
    if (call.previous === undefined) this.#first = call.next;
    else call.previous.next = call.next;
    if (call.next !== undefined) call.next.previous = call.previous;
    call.previous = undefined;
    call.next = undefined;
  }
}
