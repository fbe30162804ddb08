/**
 * Unary calls of a channel that wait for memory: the arena has no room for the copy of their requests, or a
 * large buffer is being registered. These calls wait for a limited time. They wait separately from other
 * calls, because small calls need no memory and must not wait behind them. The queue of a channel owns this
 * object and uses it on its JS thread.
 */

import type { FabricContext } from '../../boundary/fabric-context.ts';
import { deadlines, turnNow } from '../../boundary/time/deadlines.ts';
import type { TurnListener } from '../../boundary/time/timer-wheel.ts';
import { ResourceQueue } from '../../boundary/waiting/resource-queue.ts';
import { failCall, type Resolve } from '../../core/errors/failing.ts';
import { failure, requestFault } from '../../core/errors/failure.ts';
import { type Lengths, lengthsOf } from '../../core/lengths.ts';
import { memoryWaitMs } from '../../limits.ts';
import { Reason } from '../../native/native.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras, CallPlace } from '../session/call-extras.ts';
import type { Unsent } from './unsent.ts';

class ShortCall implements Unsent, CallPlace, TurnListener {
  readonly method: ClientMethod;
  readonly request: unknown;
  /** The caller's deadline. The wait for memory may have to end earlier. */
  deadlineMs: number;
  readonly extras: CallExtras | undefined;
  readonly resolve: Resolve;
  /** The context that refused the call last. `bytes` is the number of bytes that were missing. */
  context: FabricContext;
  bytes: number;
  /** Lengths of the request's buffers at the time of the call. */
  readonly lengths: Lengths | undefined;
  /**
   * State during an attempt to send the call, in which the request may run user code. `again` is set when
   * there was once more too little memory. `fate` is the error that ended the call during the attempt.
   */
  again = false;
  fate: Error | undefined;
  readonly #queue: ShortCalls;

  constructor(queue: ShortCalls, call: Unsent, context: FabricContext, bytes: number) {
    this.#queue = queue;
    this.method = call.method;
    this.request = call.request;
    this.deadlineMs = call.deadlineMs;
    this.extras = call.extras;
    this.resolve = call.resolve;
    this.context = context;
    this.bytes = bytes;
    this.lengths = lengthsOf(call.method.requestType, call.request);
  }

  cancelCall(_token: number, reason: number): void {
    this.#queue.fail(this, failure(reason, this.method.path, 'no', '', this.extras?.cause));
  }

  onLongTurn(lagMs: number): void {
    if (this.deadlineMs !== 0) this.deadlineMs += lagMs;
  }
}

export class ShortCalls {
  readonly #calls = new ResourceQueue<ShortCall>({
    retry: (call) => this.#retry(call),
    onLate: (call) => this.#onLate(call),
  });
  /** Sends a call, or queues it when it must wait for something other than memory. */
  readonly #send: (call: Unsent) => void;

  constructor(send: (call: Unsent) => void) {
    this.#send = send;
  }

  get size(): number {
    return this.#calls.size;
  }

  /**
   * Queues a call whose request of `bytes` bytes did not fit in the arena. A call that is being retried keeps
   * its position; a new call goes to the end. Returns false when the request is larger than the arena, or
   * when too many calls wait.
   */
  add(call: Unsent, context: FabricContext, bytes: number, most: number): boolean {
    if (bytes > context.native.arenaBytes) return false;
    const { trying } = this.#calls;
    if (trying?.resolve === call.resolve) {
      trying.again = true;
      trying.context = context;
      trying.bytes = bytes;
      return this.#calls.add(trying, context.waiters, context.lacking);
    }
    if (this.size >= most) return false;
    const short = new ShortCall(this, call, context, bytes);
    const limitMs = turnNow() + memoryWaitMs;
    const endMs = call.deadlineMs === 0 ? limitMs : Math.min(limitMs, call.deadlineMs);
    this.#calls.add(short, context.waiters, context.lacking, endMs);
    deadlines.listen(short);
    call.extras?.watch(short, 0);
    return true;
  }

  /** Tries all calls again. Runs when there is a new connection, because its context may have room. */
  retryAll(): void {
    this.#calls.retryAll();
  }

  fail(call: ShortCall, error: Error): void {
    if (call === this.#calls.trying) call.fate ??= error;
    else this.#end(call, error);
  }

  failAll(errorFor: (path: string) => Error): void {
    for (const call of this.#calls.clear()) this.fail(call, errorFor(call.method.path));
  }

  #retry(call: ShortCall): void {
    call.again = false;
    call.fate = undefined;
    try {
      call.lengths?.check();
    } catch (cause) {
      this.#end(call, requestFault(call.method.path, cause));
      return;
    }
    this.#send(call);
    // A call that was sent does not have to end here: its session checks signal and deadline once more, and
    // closing the channel also ends the connection.
    if (call.again && call.fate !== undefined) this.#end(call, call.fate);
  }

  #end(call: ShortCall, error: Error): void {
    this.#calls.delete(call);
    call.extras?.unwatch();
    failCall(call.resolve, error);
  }

  #onLate(call: ShortCall): void {
    const passed = call.deadlineMs !== 0 && call.deadlineMs <= deadlines.now;
    const why = call.context.shortage.why(call.bytes);
    const reason = passed ? Reason.deadline : Reason.noMemory;
    const { memoryLimits } = call.context;
    this.fail(call, failure(reason, call.method.path, 'no', why, undefined, memoryLimits));
  }
}
