/**
 * The server's side of a session. It passes each request to its handler, and sends the handler's result back.
 * Synchronous handlers answer within the event's callback. Calls of asynchronous handlers are kept in a list
 * until they finish. A server owns this object and uses it on its JS thread.
 */

import type { FabricContext } from '../boundary/fabric-context.ts';
import { Incoming } from '../boundary/incoming/incoming.ts';
import type { Target } from '../boundary/outgoing/submission.ts';
import type { SessionOwner } from '../boundary/sessions.ts';
import type { RpcError } from '../core/errors/rpc-error.ts';
import { promiseOf } from '../core/foreign.ts';
import { blockLeaseOf } from '../core/lease.ts';
import type { KnownPeer } from '../core/peer.ts';
import { inRoot } from '../core/scopes.ts';
import { Ev } from '../native/native.ts';
import { AdmissionControl } from './admission-control.ts';
import {
  connectionLost,
  givenUp,
  malformedMetadata,
  type Refusal,
  undecodable,
  unknownMethod,
} from './call-faults.ts';
import type { ConnectionAttempt } from './connection-attempt.ts';
import type { HandlerTable } from './handlers.ts';
import type { Load } from './load.ts';
import { PendingHandlers } from './pending-handlers.ts';
import { Responder } from './responder.ts';
import { type CallOwner, ServerCall } from './server-call.ts';

/** State that unary calls and streams of a session share. */
export interface Shared {
  readonly context: FabricContext;
  readonly target: Target;
  readonly session: CallOwner;
  readonly handlers: HandlerTable;
  readonly responder: Responder;
  readonly load: Load;
  readonly admission: AdmissionControl;
}

/** Receives the events that belong to streams. */
export interface ServerParts {
  onPart(at: number): void;
  onPartWaits(at: number): void;
  /**
   * Runs when the client has cancelled a call, or the deadline of the call has passed. `status` is CANCELLED
   * or DEADLINE_EXCEEDED.
   */
  onCancelled(handle: number, status: number): void;
  onDown(reason: string): void;
  /** Number of open streams. */
  readonly size: number;
}

export interface ServerSessionListener {
  onHandlerError(error: unknown, method: string): void;
  onSessionDown(session: ServerSession, reason: string): void;
}

export class ServerSession implements SessionOwner, CallOwner {
  readonly target: Target;
  readonly peer: KnownPeer;
  /** The account of the client's identity. It is undefined when the server has no quotas. */
  readonly account: ConnectionAttempt['account'];
  /**
   * Creates the stream table when the first stream arrives, because most sessions have no streams. It is
   * undefined when the session may not have streams.
   */
  makeParts: (() => ServerParts) | undefined;

  /** True when leases of requests end with their calls. */
  leasesEnd = false;

  readonly #context: FabricContext;
  readonly #handlers: HandlerTable;
  readonly #listener: ServerSessionListener;
  readonly #load: Load;
  readonly #admission: AdmissionControl;
  readonly #responder: Responder;
  readonly #incoming: Incoming;
  readonly #events: Int32Array;
  #parts: ServerParts | undefined;
  /** Number of parts of streams so far. */
  #partCount = 0;
  /** Calls of asynchronous handlers, newest first. */
  #first: ServerCall | undefined;
  readonly #pending = new PendingHandlers(
    (call, response) => {
      this.#unlink(call);
      if (call.late) call.over();
      else this.#responder.answer(call, response);
    },
    (call, error) => {
      this.#unlink(call);
      if (call.late) {
        this.#responder.report(call, error);
        call.over();
      } else this.#responder.fail(call, error);
    },
  );

  constructor(
    context: FabricContext,
    target: Target,
    { peer, account }: Pick<ConnectionAttempt, 'peer' | 'account'>,
    handlers: HandlerTable,
    load: Load,
    listener: ServerSessionListener,
  ) {
    this.target = target;
    this.peer = peer;
    this.account = account;
    this.#context = context;
    this.#handlers = handlers;
    this.#load = load;
    this.#admission = new AdmissionControl(context, load, handlers.limits, account);
    this.#listener = listener;
    this.#responder = new Responder(context, target, account, (error, method) =>
      listener.onHandlerError(error, method),
    );
    this.#events = context.native.events;
    this.#incoming = new Incoming(context, target.session);
    context.sessions.attach(this);
  }

  /** True while handlers are running. */
  get busy(): boolean {
    return this.#first !== undefined || (this.#parts !== undefined && this.#parts.size > 0);
  }

  /** Number of calls so far: unary calls and streams. */
  get calls(): number {
    return this.#admission.calls;
  }

  /** Number of requests of all kinds so far. */
  get requests(): number {
    return this.calls + this.#partCount;
  }

  /**
   * Rejects all calls of this session after the first `last` calls with UNAVAILABLE. The rejected calls do
   * not run. The first `last` calls go on.
   */
  rejectAfter(reason: string, last: number): void {
    this.#admission.rejectAfter(reason, last);
  }

  /** The state that streams use. */
  get shared(): Shared {
    return {
      session: this,
      target: this.target,
      context: this.#context,
      handlers: this.#handlers,
      responder: this.#responder,
      load: this.#load,
      admission: this.#admission,
    };
  }

  onPartWaits(at: number): void {
    const parts = this.#partsMade();
    if (parts !== undefined) parts.onPartWaits(at);
    else this.#context.native.want(this.target.session, this.#events[at + Ev.call]!);
  }

  #partsMade(): ServerParts | undefined {
    this.#parts ??= this.makeParts?.();
    return this.#parts;
  }

  onRequest(at: number): void {
    if (this.#events[at + Ev.part] !== 0) {
      const parts = this.#partsMade();
      if (parts !== undefined) {
        ++this.#partCount;
        parts.onPart(at);
        return;
      }
    }
    const admission = this.#admission;
    ++admission.calls;
    const id = this.#events[at + Ev.method]!;
    const method = this.#handlers.find(id);
    if (method === undefined) {
      admission.came(at);
      const part = this.#events[at + Ev.part] !== 0;
      this.#refuse(at, unknownMethod(this.#handlers.missing(id, part)));
      return;
    }
    const { path } = method;
    const refusal = admission.refusal(path, at);
    if (refusal !== undefined) {
      this.#refuse(at, refusal);
      return;
    }
    const { deadlineMs, limited } = admission;
    const metadata = this.#events[at + Ev.metadataBytes] === 0 ? undefined : this.#incoming.metadataBytes(at);
    if (typeof metadata === 'string') {
      this.#refuse(at, malformedMetadata(path, metadata));
      return;
    }
    const handle = this.#events[at + Ev.call]!;
    let request: unknown;
    try {
      request = this.#incoming.message(at, method.requestType, undefined);
    } catch (error) {
      this.#responder.refuse(handle, undecodable(path, error));
      return;
    }
    const call = new ServerCall(this, handle, method, deadlineMs, metadata);
    call.limited = limited;
    const lease = this.leasesEnd ? blockLeaseOf(request) : undefined;
    if (lease !== undefined) call.borrow(lease, request as object);
    this.#run(call, request);
  }

  onCancelled(at: number): void {
    const handle = this.#events[at + Ev.call]!;
    let call = this.#first;
    while (call !== undefined && call.handle !== handle) call = call.next;
    if (call === undefined) {
      this.#responder.forget(handle);
      this.#parts?.onCancelled(handle, this.#events[at + Ev.status]!);
      return;
    }
    call.abort(givenUp(call.method, this.#events[at + Ev.status]!));
  }

  onLate(call: ServerCall, reason: RpcError): void {
    this.#responder.outOfTime(call, reason);
  }

  defer(call: ServerCall, deferred: boolean): boolean {
    // A call of a one-way method was answered when it arrived. Its handler still has to run.
    return call.accepted || this.#context.native.deferHandler(this.target.session, call.handle, deferred);
  }

  lost(): void {
    this.target.gone = true;
  }

  onDown(reason: string): void {
    this.#responder.stop();
    for (let call = this.#first; call !== undefined; call = call.next) {
      call.abort(connectionLost(call.method, reason));
    }
    this.#parts?.onDown(reason);
    this.#listener.onSessionDown(this, reason);
  }

  /** Does nothing, because a server session makes no calls. */
  onReleased(): void {}

  onSettled(at: number): void {
    this.#incoming.discard(at);
  }

  onFailed(): void {}

  #refuse(at: number, refusal: Refusal): void {
    const handle = this.#events[at + Ev.call]!;
    this.#incoming.discard(at);
    this.#responder.refuse(handle, refusal);
  }

  #run(call: ServerCall, request: unknown): void {
    const { handler, self, oneWay } = call.definition;
    // The response tells the caller only that the request has arrived. Handlers that continue to run count
    // like all other handlers, so a flood of calls is rejected.
    if (oneWay) this.#responder.accept(call);
    let result: unknown;
    let promise: Promise<unknown> | undefined;
    try {
      result = inRoot(handler, self, request, call);
      promise = promiseOf(result);
    } catch (error) {
      this.#responder.fail(call, error);
      return;
    }
    if (promise !== undefined) {
      this.#link(call);
      if (call.limited) call.enforce();
      this.#pending.add(call, promise);
    } else {
      this.#responder.answer(call, result);
    }
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
