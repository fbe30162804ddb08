/**
 * Responses of a server session that must be copied into the arena, which has no room for them now, or lie in
 * a large buffer that is being registered. They wait in order, and not for ever; a response that waits holds
 * no memory but the application's. Owned by a Responder, on its JS thread, and never more than the session
 * has calls in flight.
 */

import type { SlotWaiter } from '../boundary/after-batch.ts';
import type { FabricContext } from '../boundary/fabric-context.ts';
import { deadlines, turnNow } from '../boundary/time/deadlines.ts';
import type { DeadlineOwner } from '../boundary/time/timer-wheel.ts';
import { Status, type StatusCode } from '../core/errors/status.ts';
import { memoryWaitMs, tellingMsMax } from '../limits.ts';
import type { ServerCall } from './server-call.ts';

/** What becomes of an answer in the end. */
export interface Answering {
  /** Tries once more: it comes back by `add` if there is still no room. */
  answer(call: ServerCall, response: unknown): void;
  /** Nobody waits for memory any more. */
  giveUp(call: ServerCall, why: string, status: StatusCode): void;
}

/**
 * When to stop waiting. Before the caller's own deadline, since who has given up hears nothing of a small
 * call any more: a tenth of the time that is left goes to telling what was missing.
 */
function lastMoment(call: ServerCall, nowMs: number): number {
  const limitMs = nowMs + memoryWaitMs;
  if (call.deadlineMs === 0) return limitMs;
  const leftMs = Math.max(0, call.deadlineMs - nowMs);
  return Math.min(limitMs, call.deadlineMs - Math.min(tellingMsMax, leftMs / 10));
}

class ShortAnswer implements DeadlineOwner {
  bytes: number;
  readonly call: ServerCall;
  readonly response: unknown;
  readonly #line: ShortAnswers;
  #timer: number;

  constructor(line: ShortAnswers, call: ServerCall, response: unknown, bytes: number) {
    this.#line = line;
    this.call = call;
    this.response = response;
    this.bytes = bytes;
    this.#timer = deadlines.add(lastMoment(call, turnNow()), this, 0);
  }

  onDeadline(): void {
    this.#timer = -1;
    this.#line.onLastMoment(this);
  }

  stop(): void {
    if (this.#timer !== -1) deadlines.remove(this.#timer);
    this.#timer = -1;
  }
}

export class ShortAnswers implements SlotWaiter {
  readonly #context: FabricContext;
  readonly #owner: Answering;
  #waiting: ShortAnswer[] = [];
  /** The head of the line, while it is tried once more. */
  #trying: ShortAnswer | undefined;
  #stillShort = false;

  constructor(context: FabricContext, owner: Answering) {
    this.#context = context;
    this.#owner = owner;
  }

  /**
   * The response found no room for so many bytes: it stays at the head, or becomes the last. False: that much
   * there never is.
   */
  add(call: ServerCall, response: unknown, bytes: number): boolean {
    // Without a lease nobody holds what it could wait for: it is the system that gives none. A registration
    // (0) ends by itself.
    const { native } = this.#context;
    if (bytes > native.arenaBytes || (bytes !== 0 && native.stats().arenaLeasedBlocks === 0)) return false;
    if (this.#trying?.call === call) {
      this.#stillShort = true;
      this.#trying.bytes = bytes;
    } else {
      this.#waiting.push(new ShortAnswer(this, call, response, bytes));
    }
    this.#context.awaitArena(this);
    return true;
  }

  /** Its caller has given up. */
  forget(handle: number): void {
    const at = this.#waiting.findIndex(({ call }) => call.handle === handle);
    if (at === -1) return;
    const [answer] = this.#waiting.splice(at, 1);
    answer!.stop();
    answer!.call.over();
    // It may have been what the others waited behind.
    if (at === 0) this.onSlotsFree();
  }

  stop(): void {
    for (const waiting of this.#waiting.splice(0)) {
      waiting.stop();
      waiting.call.over();
    }
  }

  onSlotsFree(): void {
    if (this.#trying !== undefined) return;
    for (let head = this.#waiting[0]; head !== undefined; head = this.#waiting[0]) {
      this.#trying = head;
      this.#stillShort = false;
      try {
        this.#owner.answer(head.call, head.response);
      } finally {
        this.#trying = undefined;
      }
      if (this.#stillShort) return;
      this.#remove(head);
    }
  }

  onLastMoment(answer: ShortAnswer): void {
    this.#remove(answer);
    // Nothing is exhausted while a buffer is registered: the time was too short for it.
    const status = answer.bytes === 0 ? Status.DEADLINE_EXCEEDED : Status.RESOURCE_EXHAUSTED;
    this.#owner.giveUp(answer.call, this.#context.whyShort(answer.bytes), status);
    this.onSlotsFree();
  }

  #remove(answer: ShortAnswer): void {
    answer.stop();
    const at = this.#waiting.indexOf(answer);
    if (at !== -1) this.#waiting.splice(at, 1);
  }
}
