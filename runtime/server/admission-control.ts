/**
 * Admission control: decides for each request of a session whether the request is run. It decides before a
 * request is decoded, so that a flood costs little and rejected callers can try another server at once. It
 * covers unary calls and streams. A ServerSession owns this object and uses it on the JS thread of the
 * session.
 */

import type { FabricContext } from '../boundary/fabric-context.ts';
import { clockMs } from '../clock.ts';
import { Ev } from '../native/native.ts';
import { exhausted, leaving, type Refusal, startsLate } from './call-faults.ts';
import type { Load } from './load.ts';
import type { Account } from './quotas.ts';
import type { TimeLimits } from './time-limits.ts';

/** The clock is read before each request that has less than this number of microseconds left. */
const hurryUs = 100_000;

export class AdmissionControl {
  /** Number of calls so far: unary calls and streams. */
  calls = 0;
  /** Deadline of the request that was admitted last, or 0 when that request has no deadline. */
  deadlineMs = 0;
  /** This is true when the server's own time limit has determined `deadlineMs`. */
  limited = false;

  readonly #context: FabricContext;
  readonly #load: Load;
  readonly #limits: TimeLimits;
  /** Account of the client, if the server has quotas. */
  readonly #account: Account | undefined;
  /** Number of requests that were admitted without reading the clock. */
  #unclocked = 0;
  /** Number of calls after which further calls are rejected. `#closed` is the reason. */
  #last = Infinity;
  #closed = '';

  constructor(context: FabricContext, load: Load, limits: TimeLimits, account: Account | undefined) {
    this.#context = context;
    this.#load = load;
    this.#limits = limits;
    this.#account = account;
  }

  /** Rejects all calls after the first `last` calls. The first `last` calls continue. */
  rejectAfter(reason: string, last: number): void {
    this.#closed = reason;
    this.#last = last;
  }

  /** Counts the bytes of the event at `at`, without any other check. */
  came(at: number): void {
    this.#account?.spend(this.#bytesOf(at));
  }

  /**
   * Returns the reason why the last counted call, with the event at `at`, is not run, or undefined when it
   * may run. The bytes of the call count in both cases.
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
    // The client's time limit, or 0 when the client sets no limit.
    const givenUs = this.#context.native.events[at + Ev.timeoutUs]! >>> 0;
    const timeoutUs = this.#limits.limitUs(givenUs);
    this.limited = timeoutUs !== givenUs;
    this.deadlineMs = 0;
    if (timeoutUs === 0) return undefined;
    // The time counts from the start of the batch, as in native code, because other handlers of the batch may
    // have taken long.
    this.deadlineMs = this.#context.batchMs + timeoutUs / 1000;
    const late = this.#mayBeLate(timeoutUs) && clockMs() >= this.deadlineMs;
    return late ? startsLate(path) : undefined;
  }

  /**
   * Returns the reason why a part of a stream, with the event at `at`, is rejected, or undefined when it is
   * accepted. The bytes of the part count in both cases.
   */
  partRefusal(at: number): string | undefined {
    const over = this.#account?.exceeded(this.#context.batchMs);
    this.came(at);
    return over;
  }

  /** Returns the reason why a stream may send no more, or undefined when it may send. */
  exceeded(): string | undefined {
    return this.#account?.exceeded(clockMs());
  }

  #bytesOf(at: number): number {
    const { events } = this.#context.native;
    return events[at + Ev.metadataBytes]! + (events[at + Ev.messageBytes]! >>> 0);
  }

  /**
   * Returns whether to read the clock. Reading the clock costs as much as decoding a small request, so the
   * clock is not read for every request that has much time left. Such a request may therefore start too late
   * when a few handlers before it have each blocked for long. A request with little time left never starts
   * too late.
   */
  #mayBeLate(timeoutUs: number): boolean {
    if (this.#context.firstOfBatch) return false;
    return timeoutUs < hurryUs || (++this.#unclocked & 3) === 0;
  }
}
