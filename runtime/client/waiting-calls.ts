/**
 * Calls of a channel that have not been sent: no connection yet, no free call slot or no free send slot. A bounded queue that calls leave at its
 * head, by deadline or by cancel. Owned by a channel, on its JS thread.
 */

import { failCall, type Reject, type Resolve } from '../core/failing.ts';
import { failure, requestFault } from '../core/failure.ts';
import { type Lengths, lengthsOf } from '../core/lengths.ts';
import { deadlines } from '../lane/deadlines.ts';
import type { DeadlineOwner } from '../lane/timer-wheel.ts';
import { Reason } from '../native.ts';
import type { CallExtras, CallPlace } from './call-extras.ts';
import type { ClientMethod } from './client-method.ts';

export class WaitingCall implements DeadlineOwner, CallPlace {
  readonly method: ClientMethod;
  readonly request: unknown;
  /** 0: none. */
  readonly deadlineMs: number;
  readonly extras: CallExtras | undefined;
  readonly resolve: Resolve;
  readonly reject: Reject;
  readonly queue: WaitingCalls;
  timer = -1;
  previous: WaitingCall | undefined;
  next: WaitingCall | undefined;
  /** Of its request, when it came. */
  lengths: Lengths | undefined;

  constructor(
    queue: WaitingCalls,
    method: ClientMethod,
    request: unknown,
    deadlineMs: number,
    extras: CallExtras | undefined,
    resolve: Resolve,
    reject: Reject,
  ) {
    this.queue = queue;
    this.method = method;
    this.request = request;
    this.deadlineMs = deadlineMs;
    this.extras = extras;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** It outlasts failed attempts to connect. */
  get patient(): boolean {
    return this.extras?.waitForReady ?? this.method.waitForReady;
  }

  onDeadline(): void {
    this.timer = -1;
    const why = this.queue.why();
    const detail = why === '' ? 'while waiting to be sent' : `while waiting to be sent: ${why}`;
    this.queue.fail(this, failure(Reason.deadline, this.method.path, 'no', detail));
  }

  cancelCall(_token: number, reason: number): void {
    this.queue.fail(this, failure(reason, this.method.path, 'no', '', this.extras?.cause));
  }
}

export class WaitingCalls {
  size = 0;
  /** What they wait for, if it is worth a word. */
  readonly why: () => string;
  #head: WaitingCall | undefined;
  #tail: WaitingCall | undefined;
  #starting = false;
  /** The head, while it is being sent. Its request may do anything meanwhile: give it up, close the channel, make calls. */
  #trying: WaitingCall | undefined;
  /** Why it has failed in that time. */
  #fate: Error | undefined;

  constructor(why: () => string = () => '') {
    this.why = why;
  }

  get head(): WaitingCall | undefined {
    return this.#head;
  }

  /** Appends a call. The caller has looked at `size`. */
  push(call: WaitingCall): void {
    call.lengths = lengthsOf(call.method.requestType, call.request);
    call.previous = this.#tail;
    if (this.#tail === undefined) this.#head = call;
    else this.#tail.next = call;
    this.#tail = call;
    ++this.size;
    if (call.deadlineMs !== 0) call.timer = deadlines.add(call.deadlineMs, call, 0);
    call.extras?.watch(call, 0);
  }

  /** Starts calls, the first one first, as long as `start` can. */
  startAll(start: (call: WaitingCall) => boolean): void {
    // Starting the head has lost a connection, and another one is there: the loop below goes on with it.
    if (this.#starting) return;
    this.#starting = true;
    try {
      for (let call = this.#head; call !== undefined; call = this.#head) {
        if (!this.tryHead(call, start)) break;
      }
    } finally {
      this.#starting = false;
    }
  }

  /** Takes a call out; its deadline and signal are somebody else's business from now on. */
  remove(call: WaitingCall): void {
    if (call.previous === undefined) this.#head = call.next;
    else call.previous.next = call.next;
    if (call.next === undefined) this.#tail = call.previous;
    else call.next.previous = call.previous;
    --this.size;
    if (call.timer !== -1) deadlines.remove(call.timer);
    call.timer = -1;
  }

  /** Hands the head to `start`. False: it could not be sent, and stays. Otherwise it has left the queue. */
  tryHead<Call extends WaitingCall>(call: Call, start: (call: Call) => boolean): boolean {
    try {
      call.lengths?.check();
    } catch (cause) {
      this.fail(call, requestFault(call.method.path, cause));
      return true;
    }
    this.#trying = call;
    let started = false;
    try {
      started = start(call);
    } finally {
      this.#trying = undefined;
    }
    const fate = this.#fate;
    this.#fate = undefined;
    // Who has taken it over knows of its signal, and tells its caller.
    if (started) this.remove(call);
    else if (fate !== undefined) this.fail(call, fate);
    return started || fate !== undefined;
  }

  fail(call: WaitingCall, error: Error): void {
    if (call === this.#trying) {
      this.#fate ??= error;
      return;
    }
    this.remove(call);
    call.extras?.unwatch();
    failCall(call.resolve, error);
  }

  /** Rejects every call with what `errorFor` makes for its method. */
  failAll(errorFor: (method: ClientMethod) => Error): void {
    let next: WaitingCall | undefined;
    for (let call = this.#head; call !== undefined; call = next) {
      next = call.next;
      this.fail(call, errorFor(call.method));
    }
  }

  /** The same for those that do not outlast a failed attempt to connect. */
  failImpatient(errorFor: (method: ClientMethod) => Error): void {
    let next: WaitingCall | undefined;
    for (let call = this.#head; call !== undefined; call = next) {
      next = call.next;
      if (!call.patient) this.fail(call, errorFor(call.method));
    }
  }
}
