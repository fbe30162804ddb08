/**
 * One end of a session of a loopback context, and the calls over it. A request becomes an event of the other
 * end, and its answer becomes an event of this end. LoopbackContext uses this file on its JS thread.
 */
import { EvKind, Reason, type SessionOptions } from '../native/native.ts';
import { eventOf, failedEvent, type LoopbackEvent, type Place } from './events.ts';

/** The values of the word `processed` of events. */
export const Processed = { no: 0, maybe: 1, yes: 2 } as const;

/** Status codes in the words of events. */
const cancelled = 1;
const deadlineExceeded = 4;

/** A call between its request and its last event. Both ends share this object. */
export interface LoopbackCall {
  /** The client's call slot. */
  readonly slot: number;
  /** The number of the call in the server's events and in the server's answer. */
  readonly handle: number;
  /**
   * Whether the client receives the last event of the call only when the server has released the call's
   * memory (docs/internals/decisions/calls.md).
   */
  readonly confirmed: boolean;
  /**
   * The block for the answer, or 0. With `replyBufferOnly`, an answer that does not fit into this block is
   * refused.
   */
  readonly replyBuffer: number;
  readonly replyBufferOnly: boolean;
  /** True for a call or a stream, false for a part of a stream. */
  readonly counts: boolean;
  /** The event that brings the call to the server's JS. It is undefined when JS has got the event. */
  request: LoopbackEvent | undefined;
  /** The event that brings the answer to the client's JS. It is undefined until the server has answered. */
  answer: LoopbackEvent | undefined;
  /**
   * True when the client has cancelled the call and waits until the server has released the call's memory.
   */
  leaving: boolean;
  /** True while the server's JS has the request, but its handler has not begun. */
  deferred?: boolean;
}

/** The functions of the context that a session uses. */
export interface SessionHost {
  emit(event: LoopbackEvent): void;
  /** Frees the message of an event that will not be delivered. */
  drop(place: Place): void;
}

export class LoopbackSession {
  readonly number: number;
  readonly options: SessionOptions;
  state: 'connecting' | 'ready' | 'down' = 'connecting';
  /** True after connectSession() was called for this end. */
  dialled = false;
  peer: LoopbackSession | undefined;
  error = '';
  endedThere = false;
  /** Calls in progress, by call slot on a client and by handle on a server. */
  readonly calls = new Map<number, LoopbackCall>();

  readonly #host: SessionHost;

  constructor(number: number, options: SessionOptions, host: SessionHost) {
    this.number = number;
    this.options = options;
    this.#host = host;
  }

  /** The other end of a session that is up. It is undefined when the session is not up. */
  get other(): LoopbackSession | undefined {
    return this.state === 'ready' ? this.peer : undefined;
  }

  get callsInFlight(): number {
    let count = 0;
    for (const { counts } of this.calls.values()) if (counts) ++count;
    return count;
  }

  /** Connects to the other end. The session is up after connectSession() was called for both ends. */
  connect(peer: LoopbackSession): void {
    this.dialled = true;
    this.peer = peer;
    if (!peer.dialled || peer.peer !== this) return;
    for (const end of [peer, this]) {
      end.state = 'ready';
      this.#host.emit(eventOf(EvKind.sessionUp, end.number));
    }
  }

  /** Begins a call on the client. `call.request` is the event for the server. */
  begin(call: LoopbackCall, server: LoopbackSession): void {
    this.calls.set(call.slot, call);
    server.calls.set(call.handle, call);
    this.#host.emit(call.request!);
  }

  /** Runs on the server when JS has got the request of the call. */
  onRequest(handle: number): void {
    const call = this.calls.get(handle);
    if (call !== undefined) call.request = undefined;
  }

  /**
   * Answers a call on the server. The client may have cancelled the call. Returns false when no client waits
   * for the answer.
   */
  answer(call: LoopbackCall, words: Partial<LoopbackEvent>): boolean {
    this.calls.delete(call.handle);
    const client = this.other;
    if (client?.calls.get(call.slot) !== call) return false;
    call.answer = eventOf(EvKind.settled, client.number, { call: call.slot, ...words });
    this.#host.emit(call.answer);
    return true;
  }

  /** Runs on the client when JS has got the last event of a call. */
  onAnswer(event: LoopbackEvent): void {
    if (this.calls.get(event.call)?.answer === event) this.calls.delete(event.call);
  }

  /**
   * Cancels a call on the client. The server gets the cancellation after all earlier events. A call that must
   * be confirmed ends with the server's confirmation, or with an answer that is already on its way. It ends
   * at once if the server has not received its request yet. All other calls also end at once.
   */
  cancel(slot: number, reason: number): void {
    const call = this.calls.get(slot);
    const server = this.other;
    if (call === undefined || server === undefined || call.leaving) return;
    if (call.confirmed && this.#takeBack(call)) {
      this.calls.delete(slot);
      server.calls.delete(call.handle);
      this.#host.emit(failedEvent(this.number, slot, reason, Processed.no));
      return;
    }
    const status = reason === Reason.deadline ? deadlineExceeded : cancelled;
    if (call.answer === undefined)
      this.#host.emit(eventOf(EvKind.cancelled, server.number, { call: call.handle, method: status }));
    if (call.confirmed) {
      call.leaving = true;
      return;
    }
    this.calls.delete(slot);
    if (call.answer !== undefined) this.#drop(call.answer);
    this.#host.emit(failedEvent(this.number, slot, reason, Processed.maybe));
  }

  /**
   * Runs on the server when JS is about to get the cancellation of a call. Returns false when the server has
   * already answered the call.
   */
  onCancelled({ call: handle, method }: LoopbackEvent): boolean {
    const call = this.calls.get(handle);
    if (call === undefined) return false;
    this.answer(call, { method, processed: call.deferred === true ? Processed.no : Processed.yes });
    return true;
  }

  /** Runs on the server. Returns false when the call is over. */
  deferHandler(handle: number, deferred: boolean): boolean {
    const call = this.calls.get(handle);
    if (call === undefined) return false;
    call.deferred = deferred;
    return true;
  }

  /** Ends the session at both ends. */
  close(reason: string): void {
    if (this.state === 'down') return;
    const peer = this.other;
    this.#end(reason, false);
    if (peer !== undefined) peer.#end('the other side has closed the session', true);
  }

  #end(reason: string, endedThere: boolean): void {
    this.state = 'down';
    this.error = reason;
    this.endedThere = endedThere;
    // Both ends have the same calls. Only the client's JS waits for the end of the calls.
    if (this.options.role === 'client') {
      for (const call of this.calls.values()) {
        if (call.answer !== undefined) continue;
        const processed = this.#takeBack(call) ? Processed.no : Processed.maybe;
        this.#host.emit(failedEvent(this.number, call.slot, Reason.sessionLost, processed));
      }
    }
    this.calls.clear();
    this.#host.emit(eventOf(EvKind.sessionDown, this.number));
  }

  /** Removes the request of a call from the queue. Returns false when the server has got it. */
  #takeBack(call: LoopbackCall): boolean {
    const { request } = call;
    if (request === undefined) return false;
    call.request = undefined;
    this.#drop(request);
    return true;
  }

  #drop(event: LoopbackEvent): void {
    event.kind = 0;
    this.#host.drop(event.place);
  }
}
