/**
 * Unary calls of a channel that wait for a connection, a call slot or a send slot. A call leaves the queue
 * when it is the head and can be sent, when its deadline passes, or when it is cancelled. The file
 * boundary/time/deadlines.ts explains what a *turn* is. The queue of a channel owns this object and uses it
 * on its JS thread.
 */

import { deadlines } from '../../boundary/time/deadlines.ts';
import { type DeadlinesOwner, EarliestDeadline } from '../../boundary/time/earliest-deadline.ts';
import type { TurnListener } from '../../boundary/time/timer-wheel.ts';
import { failCall, type Resolve, refuseCall } from '../../core/errors/failing.ts';
import { failure } from '../../core/errors/failure.ts';
import { type Lengths, lengthsOf } from '../../core/lengths.ts';
import { Reason } from '../../native/native.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras, CallPlace } from '../session/call-extras.ts';
import type { Unsent } from './unsent.ts';
import { Waiter, WaitQueue } from './wait-queue.ts';

export class WaitingCall extends Waiter implements Unsent, CallPlace {
  readonly method: ClientMethod;
  readonly request: unknown;
  /** Deadline of the call, or 0 for no deadline. */
  deadlineMs: number;
  readonly extras: CallExtras | undefined;
  readonly resolve: Resolve;
  readonly queue: WaitingCalls;
  /** The turn in which the call was queued. */
  turn = 0;

  constructor(
    queue: WaitingCalls,
    method: ClientMethod,
    request: unknown,
    deadlineMs: number,
    extras: CallExtras | undefined,
    resolve: Resolve,
  ) {
    super();
    this.queue = queue;
    this.method = method;
    this.request = request;
    this.deadlineMs = deadlineMs;
    this.extras = extras;
    this.resolve = resolve;
  }

  get path(): string {
    return this.method.path;
  }

  get endMs(): number {
    return this.deadlineMs === 0 ? Infinity : this.deadlineMs;
  }

  get waitForReady(): boolean {
    return this.extras?.waitForReady ?? this.method.waitForReady;
  }

  measure(): Lengths | undefined {
    return lengthsOf(this.method.requestType, this.request);
  }

  onWaiting(): void {
    this.queue.noteDeadline(this);
    this.extras?.watch(this, 0);
  }

  onLeaving(): void {}

  fail(error: Error): void {
    this.extras?.unwatch();
    failCall(this.resolve, error);
  }

  refuse(makeError: () => Error): void {
    refuseCall(this.resolve, makeError);
  }

  /** Adds the length of the call's turn to its deadline, which was computed from the start of the turn. */
  postpone(lagMs: number): void {
    if (this.deadlineMs !== 0) this.deadlineMs += lagMs;
  }

  onDeadline(): void {
    const why = this.queue.why();
    const detail = why === '' ? 'while waiting to be sent' : `while waiting to be sent: ${why}`;
    this.queue.fail(this, failure(Reason.deadline, this.path, 'no', detail, this.queue.cause()));
  }

  cancelCall(_token: number, reason: number): void {
    this.queue.fail(this, failure(reason, this.path, 'no', '', this.extras?.cause));
  }
}

export class WaitingCalls extends WaitQueue<WaitingCall> implements DeadlinesOwner, TurnListener {
  /** Returns the reason why the calls wait, or an empty text. The text becomes part of their errors. */
  readonly why: () => string;
  /** The error that is the reason for the wait. */
  readonly cause: () => Error | undefined;
  /** The turn in which the last call was queued. */
  #turn: number = deadlines.turn - 1;
  readonly #earliest: EarliestDeadline = new EarliestDeadline(this);
  /**
   * True while the deadlines are in increasing order, as with equal time limits. A search can then stop at
   * the first later deadline.
   */
  #inOrder = true;
  /** The latest deadline, while the deadlines are in order. */
  #latestMs = 0;

  constructor(why: () => string = () => '', cause: () => Error | undefined = () => undefined) {
    super();
    this.why = why;
    this.cause = cause;
  }

  /** Adds the deadline of a newly queued call. */
  noteDeadline(call: WaitingCall): void {
    const { turn } = deadlines;
    call.turn = turn;
    if (this.#turn !== turn) {
      this.#turn = turn;
      deadlines.listen(this);
    }
    if (this.size === 1) {
      this.#inOrder = true;
      this.#latestMs = 0;
    }
    const { deadlineMs } = call;
    if (deadlineMs === 0) return;
    if (deadlineMs < this.#latestMs) this.#inOrder = false;
    else this.#latestMs = deadlineMs;
    this.#earliest.add(deadlineMs);
  }

  onDeadlines(): number {
    let earliestMs = Infinity;
    for (let call = this.head, next = call; call !== undefined; call = next) {
      next = call.next as WaitingCall | undefined;
      const { deadlineMs } = call;
      if (deadlineMs === 0) continue;
      if (deadlineMs <= deadlines.now) call.onDeadline();
      else if (deadlineMs < earliestMs) earliestMs = deadlineMs;
      if (this.#inOrder && earliestMs !== Infinity) break;
    }
    return earliestMs;
  }

  /** Postpones the calls of this turn, which are at the end of the queue. */
  onLongTurn(lagMs: number): void {
    const { turn } = deadlines;
    this.#latestMs += lagMs;
    this.#earliest.onLongTurn(lagMs);
    for (let call = this.tail; call?.turn === turn; call = call.previous as WaitingCall | undefined)
      call.postpone(lagMs);
  }

  override failAll(errorFor: (path: string) => Error): void {
    super.failAll(errorFor);
    this.#earliest.stop();
  }
}
