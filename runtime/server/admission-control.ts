/**
 * Admission control: decides which requests of a session are run, before they are decoded, so that a flood
 * costs little and rejected callers can try another server at once. For unary calls and streams; owned by a
 * ServerSession, on its JS thread.
 */

import type { FabricContext } from '../boundary/fabric-context.ts';
import { clockMs } from '../clock.ts';
import { Ev } from '../native/native.ts';
import { exhausted, leaving, type Refusal, startsLate } from './call-faults.ts';
import type { Load } from './load.ts';
import type { Account } from './quotas.ts';
import type { TimeLimits } from './time-limits.ts';

/** A request with less time left than this is never started without reading the clock. */
const hurryUs = 100_000;

export class AdmissionControl {
  /** Number of calls so far: unary calls and streams. */
  calls = 0;
  /** Deadline of the request that was admitted last; 0 for none. */
  deadlineMs = 0;
  /** True when that deadline is the server's own limit. */
  limited = false;

  readonly #context: FabricContext;
  readonly #load: Load;
  readonly #limits: TimeLimits;
  /** Account of the client, if the server has quotas. */
  readonly #account: Account | undefined;
  /** Requests admitted without reading the clock. */
  #unclocked = 0;
  /** Number of calls after which calls are rejected, and the reason. */
  #last = Infinity;
  #closed = '';

  constructor(context: FabricContext, load: Load, limits: TimeLimits, account: Account | undefined) {
    this.#context = context;
    this.#load = load;
    this.#limits = limits;
    this.#account = account;
  }

  /** Rejects calls after the first `last`; earlier ones go on. */
  rejectAfter(reason: string, last: number): void {
    this.#closed = reason;
    this.#last = last;
  }

  /** Counts the bytes of the event at `at`, which is not checked otherwise. */
  came(at: number): void {
    this.#account?.spend(this.#bytesOf(at));
  }

  /**
   * Returns why the last counted call, with the event at `at`, is not run; undefined when it may run. Its
   * bytes count in both cases.
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
    // Time limit of the client; 0 for none.
    const givenUs = this.#context.native.events[at + Ev.timeoutUs]! >>> 0;
    const timeoutUs = this.#limits.limitUs(givenUs);
    this.limited = timeoutUs !== givenUs;
    this.deadlineMs = 0;
    if (timeoutUs === 0) return undefined;
    // Count from the start of the batch, as native code does: handlers of the same batch may have taken long.
    this.deadlineMs = this.#context.batchMs + timeoutUs / 1000;
    const late = this.#mayBeLate(timeoutUs) && clockMs() >= this.deadlineMs;
    return late ? startsLate(path) : undefined;
  }

  /**
   * Returns why a part of a stream, with the event at `at`, is rejected; undefined when it is accepted. Its
   * bytes count in both cases.
   */
  partRefusal(at: number): string | undefined {
    const over = this.#account?.exceeded(this.#context.batchMs);
    this.came(at);
    return over;
  }

  /** Returns why a stream may send no more; undefined when it may. */
  exceeded(): string | undefined {
    return this.#account?.exceeded(clockMs());
  }

  #bytesOf(at: number): number {
    const { events } = this.#context.native;
    return events[at + Ev.metadataBytes]! + (events[at + Ev.messageBytes]! >>> 0);
  }

  /**
   * Returns whether to read the clock. Reading it costs as much as decoding a small request, so for requests
   * with time to spare it is read only now and then. So after a few handlers that each blocked for long, such
   * a request may start too late; a request with little time left never does.
   */
  #mayBeLate(timeoutUs: number): boolean {
    if (this.#context.firstOfBatch) return false;
    return timeoutUs < hurryUs || (++this.#unclocked & 3) === 0;
  }
}
