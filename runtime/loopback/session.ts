/**
 * One end of a session of a loopback context, and the calls that go through it. A request becomes the other
 * end's event, its answer this end's; nothing else lies between the two. Used by LoopbackContext, on its JS
 * thread.
 */
import { EvKind, Reason, type SessionOptions } from '../native/native.ts';
import { eventOf, failedEvent, type LoopbackEvent, type Place } from './events.ts';

/** As the word `processed` of events has it. */
export const Processed = { no: 0, maybe: 1, yes: 2 } as const;

/** Status codes, as the words of events have them. */
const cancelled = 1;
const deadlineExceeded = 4;

/** A call between its request and its last event. Both ends have the same object. */
export interface LoopbackCall {
  /** The client's call slot. */
  readonly slot: number;
  /** What the server's events and its answer name it by. */
  readonly handle: number;
  /** Its client is told only when the server has let go of it (docs/internals/decisions/calls.md). */
  readonly confirmed: boolean;
  /** Block for the answer, or 0; `replyBufferOnly`: what does not fit it is refused. */
  readonly replyBuffer: number;
  readonly replyBufferOnly: boolean;
  /** It is a stream or a call, and no part of one. */
  readonly counts: boolean;
  /** The event that brings it to the server, until JS has had that. */
  request: LoopbackEvent | undefined;
  /** The event that brings the answer to the client, until JS has had that. */
  answer: LoopbackEvent | undefined;
  /** Its client has given it up, and waits until the server has let go of it. */
  leaving: boolean;
}

/** What a session needs of its context. */
export interface SessionHost {
  emit(event: LoopbackEvent): void;
  /** The message of an event that nobody will get. */
  drop(place: Place): void;
}

export class LoopbackSession {
  readonly number: number;
  readonly options: SessionOptions;
  state: 'connecting' | 'ready' | 'down' = 'connecting';
  /** connectSession() has been called for this end. */
  dialled = false;
  peer: LoopbackSession | undefined;
  error = '';
  endedThere = false;
  /** Calls under way: of a client by call slot, of a server by handle. */
  readonly calls = new Map<number, LoopbackCall>();

  readonly #host: SessionHost;

  constructor(number: number, options: SessionOptions, host: SessionHost) {
    this.number = number;
    this.options = options;
    this.#host = host;
  }

  /** The other end of a session that has both. */
  get other(): LoopbackSession | undefined {
    return this.state === 'ready' ? this.peer : undefined;
  }

  get callsInFlight(): number {
    let count = 0;
    for (const { counts } of this.calls.values()) if (counts) ++count;
    return count;
  }

  /** Connects it to the other end. Both are up when both have been told to connect. */
  connect(peer: LoopbackSession): void {
    this.dialled = true;
    this.peer = peer;
    if (!peer.dialled || peer.peer !== this) return;
    for (const end of [peer, this]) {
      end.state = 'ready';
      this.#host.emit(eventOf(EvKind.sessionUp, end.number));
    }
  }

  /** Client: a call begins, whose request is `event` at the server. */
  begin(call: LoopbackCall, server: LoopbackSession): void {
    this.calls.set(call.slot, call);
    server.calls.set(call.handle, call);
    this.#host.emit(call.request!);
  }

  /** Server: JS has the request of this call from now on. */
  onRequest(handle: number): void {
    const call = this.calls.get(handle);
    if (call !== undefined) call.request = undefined;
  }

  /** Server: answers a call, whose client may have given it up. Returns false when nobody waits for it. */
  answer(call: LoopbackCall, words: Partial<LoopbackEvent>): boolean {
    this.calls.delete(call.handle);
    const client = this.other;
    if (client?.calls.get(call.slot) !== call) return false;
    call.answer = eventOf(EvKind.settled, client.number, { call: call.slot, ...words });
    this.#host.emit(call.answer);
    return true;
  }

  /** Client: JS has the last event of the call in this slot from now on. */
  onAnswer(event: LoopbackEvent): void {
    if (this.calls.get(event.call)?.answer === event) this.calls.delete(event.call);
  }

  /**
   * Client: gives a call up. The server learns of it behind what is on its way. A call that is confirmed ends
   * with the server's word, or with an answer that is on its way, unless the server has not had its request;
   * another one ends at once.
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

  /** Server: JS learns now that this call was given up. Returns false when it has answered meanwhile. */
  onCancelled({ call: handle, method }: LoopbackEvent): boolean {
    const call = this.calls.get(handle);
    if (call === undefined) return false;
    this.answer(call, { method, processed: Processed.yes });
    return true;
  }

  /** Ends both ends of the session. */
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
    // Both ends have the same calls, and only the client's JS waits for them.
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

  /** Takes back the request of a call. Returns false when the server has it. */
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
