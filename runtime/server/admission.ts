/**
 * Which requests of a session are run: before anything of them is decoded, so that a flood costs little and
 * their callers may try elsewhere at once. For unary calls and streams; owned by a ServerSession, on its JS
 * thread.
 */

import type { FabricContext } from '../boundary/fabric-context.ts';
import { clockMs } from '../clock.ts';
import { Ev } from '../native/native.ts';
import { exhausted, leaving, type Refusal, startsLate } from './call-faults.ts';
import type { Load } from './load.ts';
import type { Account } from './quotas.ts';
import type { TimeLimits } from './time-limits.ts';

/** A request with less time left than this is never started without a look at the clock. */
const hurryUs = 100_000;

export class Admission {
  /** Calls so far: unary ones, and streams. */
  calls = 0;
  /** Of the request that was let in last; 0: none. */
  deadlineMs = 0;
  /** That deadline is the server's own limit. */
  limited = false;

  readonly #context: FabricContext;
  readonly #load: Load;
  readonly #limits: TimeLimits;
  /** Of the client, where there are quotas. */
  readonly #account: Account | undefined;
  /** Requests taken without a look at the clock. */
  #unclocked = 0;
  /** Calls after so many are turned away, and why. */
  #last = Infinity;
  #closed = '';

  constructor(context: FabricContext, load: Load, limits: TimeLimits, account: Account | undefined) {
    this.#context = context;
    this.#load = load;
    this.#limits = limits;
    this.#account = account;
  }

  /** Calls after the first `last` are not run; the others go on. */
  turnAway(reason: string, last: number): void {
    this.#closed = reason;
    this.#last = last;
  }

  /** Bytes that nothing else here looks at have come, with the event at `at`. */
  came(at: number): void {
    this.#account?.spend(this.#bytesOf(at));
  }

  /**
   * Why the call that was counted last, with the event at `at`, is not run; undefined when it may be. Its
   * bytes count either way.
   */
  refusal(path: string, at: number): Refusal | undefined {
    const refusal = this.#refusal(path, at);
    this.came(at);
    return refusal;
  }

  #refusal(path: string, at: number): Refusal | undefined {
    if (this.calls > this.#last) return leaving(path, this.#closed);
    if (this.#load.full) return exhausted(path, this.#load.text);
    const over = this.#account?.refusal(path, this.#context.batchMs);
    if (over !== undefined) return over;
    // What its client gives it; 0: no limit.
    const givenUs = this.#context.native.events[at + Ev.timeoutUs]! >>> 0;
    const timeoutUs = this.#limits.limitUs(givenUs);
    this.limited = timeoutUs !== givenUs;
    this.deadlineMs = 0;
    if (timeoutUs === 0) return undefined;
    // Counted from the batch's start, as native code did; handlers of the same batch may have taken long
    // since.
    this.deadlineMs = this.#context.batchMs + timeoutUs / 1000;
    const late = this.#mayBeLate(timeoutUs) && clockMs() >= this.deadlineMs;
    return late ? startsLate(path) : undefined;
  }

  /**
   * Why a part of a stream, with the event at `at`, is not taken; undefined when it is. Its bytes count
   * either way.
   */
  partRefusal(at: number): string | undefined {
    const over = this.#account?.exceeded(this.#context.batchMs);
    this.came(at);
    return over;
  }

  /** Why nothing more is sent in a stream; undefined when it may be. */
  exceeded(): string | undefined {
    return this.#account?.exceeded(clockMs());
  }

  #bytesOf(at: number): number {
    const { events } = this.#context.native;
    return events[at + Ev.metadataBytes]! + (events[at + Ev.messageBytes]! >>> 0);
  }

  /**
   * Whether a look at the clock is due. It costs as much as decoding a small request, so a request with time
   * to spare gets one only now and then: after a few handlers that each blocked for long, one may start late;
   * none that was in a hurry.
   */
  #mayBeLate(timeoutUs: number): boolean {
    if (this.#context.firstOfBatch) return false;
    return timeoutUs < hurryUs || (++this.#unclocked & 3) === 0;
  }
}
