/**
 * Unary calls of a channel whose requests must be copied into the arena, which has no room for them now, or
 * lie in a large buffer that is being registered. They wait apart from others, since small calls need none,
 * and not for ever. Owned by a channel, on its JS thread.
 */

import type { SlotWaiter } from '../../boundary/after-batch.ts';
import type { FabricContext } from '../../boundary/fabric-context.ts';
import { deadlines, turnNow } from '../../boundary/time/deadlines.ts';
import { failure } from '../../core/errors/failure.ts';
import { memoryWaitMs } from '../../limits.ts';
import { Reason } from '../../native/native.ts';
import type { Unsent } from './unsent.ts';
import { WaitingCall, WaitingCalls } from './waiting-calls.ts';

class ShortCall extends WaitingCall {
  /** Of the call itself, 0: none. The one that the queue knows may be earlier. */
  ownDeadlineMs: number;
  context: FabricContext;
  bytes: number;

  constructor(queue: WaitingCalls, call: Unsent, context: FabricContext, bytes: number) {
    const limitMs = turnNow() + memoryWaitMs;
    const endMs = call.deadlineMs === 0 ? limitMs : Math.min(limitMs, call.deadlineMs);
    super(queue, call.method, call.request, endMs, call.extras, call.resolve);
    this.ownDeadlineMs = call.deadlineMs;
    this.context = context;
    this.bytes = bytes;
  }

  override postpone(lagMs: number): void {
    super.postpone(lagMs);
    if (this.ownDeadlineMs !== 0) this.ownDeadlineMs += lagMs;
  }

  override onDeadline(): void {
    const passed = this.ownDeadlineMs !== 0 && this.ownDeadlineMs <= deadlines.now;
    const why = this.context.whyShort(this.bytes);
    this.queue.fail(this, failure(passed ? Reason.deadline : Reason.noMemory, this.path, 'no', why));
  }
}

export class MemoryWaitQueue implements SlotWaiter {
  readonly #calls = new WaitingCalls<ShortCall>();
  /** Sends a call, or queues it where it waits for something else. */
  readonly #send: (call: ShortCall) => void;
  /** The head of the queue, while it is tried once more. */
  #trying: ShortCall | undefined;
  #stillShort = false;

  constructor(send: (call: ShortCall) => void) {
    this.#send = send;
  }

  get size(): number {
    return this.#calls.size;
  }

  /**
   * The call's request found no room for so many bytes: it stays, or becomes the last of the queue. False: so
   * many never come, or too many wait.
   */
  add(call: Unsent, context: FabricContext, bytes: number, most: number): boolean {
    if (bytes > context.native.arenaBytes) return false;
    const head = this.#trying;
    // Another one: a getter of the head's request may make calls itself.
    if (head?.resolve !== call.resolve) {
      if (this.size >= most) return false;
      this.#calls.push(new ShortCall(this.#calls, call, context, bytes));
    } else {
      this.#stillShort = true;
      head.context = context;
      head.bytes = bytes;
    }
    context.awaitArena(this);
    return true;
  }

  /**
   * Memory has come free, or the connection is another one. In order: none is starved by smaller ones behind
   * it.
   */
  onSlotsFree(): void {
    // Sending the head has lost a connection, and another one is there: the loop below goes on with it.
    if (this.#trying !== undefined) return;
    for (let call = this.#calls.head; call !== undefined; call = this.#calls.head) {
      if (!this.#calls.tryHead(call, this.#sendHead)) return;
    }
  }

  readonly #sendHead = (call: ShortCall): boolean => {
    this.#trying = call;
    this.#stillShort = false;
    try {
      this.#send(call);
    } finally {
      this.#trying = undefined;
    }
    return !this.#stillShort;
  };

  failAll(errorFor: (path: string) => Error): void {
    this.#calls.failAll(errorFor);
  }
}
