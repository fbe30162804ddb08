/**
 * Unary calls of a channel that have not been sent: no connection yet, no free call slot or no free send slot. Each leaves its queue at the head, by
 * deadline or by cancel. Owned by the queue of a channel, on its JS thread.
 */

import { failCall, type Reject, type Resolve, refuseCall } from '../../core/errors/failing.ts';
import { failure } from '../../core/errors/failure.ts';
import { type Lengths, lengthsOf } from '../../core/lengths.ts';
import { deadlines } from '../../lane/deadlines.ts';
import type { DeadlineOwner } from '../../lane/timer-wheel.ts';
import { Reason } from '../../native.ts';
import type { CallExtras, CallPlace } from '../call-extras.ts';
import type { ClientMethod } from '../client-method.ts';
import type { Unsent } from './unsent.ts';
import { Waiter, WaitQueue } from './wait-queue.ts';

export class WaitingCall extends Waiter implements Unsent, DeadlineOwner, CallPlace {
  readonly method: ClientMethod;
  readonly request: unknown;
  /** 0: none. */
  readonly deadlineMs: number;
  readonly extras: CallExtras | undefined;
  readonly resolve: Resolve;
  readonly reject: Reject;
  readonly queue: WaitingCalls;
  timer = -1;

  /** `deadlineMs`: where it may wait for less than its own time. */
  constructor(queue: WaitingCalls, call: Unsent, deadlineMs: number = call.deadlineMs) {
    super();
    this.queue = queue;
    this.method = call.method;
    this.request = call.request;
    this.deadlineMs = deadlineMs;
    this.extras = call.extras;
    this.resolve = call.resolve;
    this.reject = call.reject;
  }

  get path(): string {
    return this.method.path;
  }

  get waitForReady(): boolean {
    return this.extras?.waitForReady ?? this.method.waitForReady;
  }

  measure(): Lengths | undefined {
    return lengthsOf(this.method.requestType, this.request);
  }

  onWaiting(): void {
    if (this.deadlineMs !== 0) this.timer = deadlines.add(this.deadlineMs, this, 0);
    this.extras?.watch(this, 0);
  }

  onLeaving(): void {
    if (this.timer !== -1) deadlines.remove(this.timer);
    this.timer = -1;
  }

  fail(error: Error): void {
    this.extras?.unwatch();
    failCall(this.resolve, error);
  }

  refuse(makeError: () => Error): void {
    refuseCall(this.reject, makeError);
  }

  onDeadline(): void {
    this.timer = -1;
    const why = this.queue.why();
    const detail = why === '' ? 'while waiting to be sent' : `while waiting to be sent: ${why}`;
    this.queue.fail(this, failure(Reason.deadline, this.path, 'no', detail, this.queue.cause()));
  }

  cancelCall(_token: number, reason: number): void {
    this.queue.fail(this, failure(reason, this.path, 'no', '', this.extras?.cause));
  }
}

export class WaitingCalls<Call extends WaitingCall = WaitingCall> extends WaitQueue<Call> {
  /** What they wait for, if it is worth a word. */
  readonly why: () => string;
  /** The error behind that. */
  readonly cause: () => Error | undefined;

  constructor(why: () => string = () => '', cause: () => Error | undefined = () => undefined) {
    super();
    this.why = why;
    this.cause = cause;
  }
}
