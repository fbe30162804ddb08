/**
 * The server half of a session: takes each request to its handler and the handler's result back. Sync
 * handlers answer within the event's callback; async ones are kept in a list until they are done. Owned by a
 * server, on its JS thread.
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
import { Admission } from './admission.ts';
import type { Arrival } from './arrival.ts';
import {
  connectionLost,
  givenUp,
  malformedMetadata,
  type Refusal,
  undecodable,
  unknownMethod,
} from './call-faults.ts';
import type { HandlerTable } from './handlers.ts';
import type { Load } from './load.ts';
import { PendingHandlers } from './pending-handlers.ts';
import { Responder } from './responder.ts';
import { type CallOwner, ServerCall } from './server-call.ts';

/** What unary calls and streams of a session share. */
export interface Shared {
  readonly context: FabricContext;
  readonly target: Target;
  readonly session: CallOwner;
  readonly handlers: HandlerTable;
  readonly responder: Responder;
  readonly load: Load;
  readonly admission: Admission;
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
  readonly peer: KnownPeer;
  /**
   * Makes what its streams need, if it may have any: when the first one comes, as most sessions have none.
   */
  makeParts: (() => ServerParts) | undefined;

  /** Leases of requests end with their calls. */
  leasesEnd = false;

  readonly #context: FabricContext;
  readonly #handlers: HandlerTable;
  readonly #listener: ServerSessionListener;
  readonly #load: Load;
  readonly #admission: Admission;
  readonly #responder: Responder;
  readonly #incoming: Incoming;
  readonly #events: Int32Array;
  #parts: ServerParts | undefined;
  /** Parts of streams so far. */
  #partCount = 0;
  /** Calls of async handlers, newest first. */
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
    { peer, account }: Pick<Arrival, 'peer' | 'account'>,
    handlers: HandlerTable,
    load: Load,
    listener: ServerSessionListener,
  ) {
    this.target = target;
    this.peer = peer;
    this.#context = context;
    this.#handlers = handlers;
    this.#load = load;
    this.#admission = new Admission(context, load, handlers.limits, account);
    this.#listener = listener;
    this.#responder = new Responder(context, target, account, (error, method) =>
      listener.onHandlerError(error, method),
    );
    this.#events = context.native.events;
    this.#incoming = new Incoming(context, target.session);
    context.sessions.attach(this);
  }

  /** There are calls whose handlers have not answered yet. */
  get busy(): boolean {
    return this.#first !== undefined || (this.#parts !== undefined && this.#parts.size > 0);
  }

  /** Calls so far: unary ones, and streams. */
  get calls(): number {
    return this.#admission.calls;
  }

  /** Changes with every request, of whatever kind. */
  get requests(): number {
    return this.calls + this.#partCount;
  }

  /** Calls after the first `last` of this session answer UNAVAILABLE without being run; the others go on. */
  turnAway(reason: string, last: number): void {
    this.#admission.turnAway(reason, last);
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

  /** Events of calls that this side has made; a server makes none. */
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
    // The caller learns that the request is here, and no more. Handlers that run on count as any others, so a
    // flood is turned away.
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
