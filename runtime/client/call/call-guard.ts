/**
 * Ends a call with interceptors at its time limit or by its signals, even when an interceptor never settles.
 * The calls that the interceptors make have the same time limit and signals. Each intercepted call of a
 * client has one guard.
 */

import { turnNow } from '../../boundary/time/deadlines.ts';
import { clockMs } from '../../clock.ts';
import { type Abortable, listen, unlisten } from '../../core/abort-listeners.ts';
import { failure, reasonOf } from '../../core/errors/failure.ts';
import { type Processed, RpcError } from '../../core/errors/rpc-error.ts';
import type { HandlerContext } from '../../core/handler-context.ts';
import type { RpcRequest } from '../../core/interceptor.ts';
import type { CallOptions } from '../../core/types.ts';
import { interceptorGraceMs, timerMaxMs } from '../../limits.ts';
import { Reason } from '../../native/native.ts';

const order: readonly Processed[] = ['no', 'maybe', 'yes'];

export class CallGuard implements Abortable {
  /**
   * The start of the call in milliseconds, on the clock of deadlines.ts, like the deadline of the guarded
   * call.
   */
  readonly startedMs: number = turnNow();
  readonly #path: string;
  readonly #signal: AbortSignal | undefined;
  readonly #context: HandlerContext | undefined;
  /** The signal of `#context`. */
  readonly #parent: AbortSignal | undefined;
  #deadlineMs = Number.POSITIVE_INFINITY;
  /** True while this object listens to the signals and its timer runs. */
  #watching = false;
  /**
   * The timer for the deadline; after the deadline, the timer for the grace period. The timer keeps the
   * process alive, so that a call with a time limit always settles.
   */
  #timer: NodeJS.Timeout | undefined;
  /** Rejects the promise for which the caller waits, or the last promise if the caller does not wait. */
  #reject: ((error: unknown) => void) | undefined;
  /** The Reason why the call has ended, or 0 before its end. */
  #reason = 0;
  #cause: unknown;
  #sent: Processed = 'no';
  #underWay = 0;
  /**
   * True when the last call of next() has the signals of this call, so that it ends together with this call.
   */
  bound = false;

  /** A negative `timeoutMs` means no time limit. */
  constructor(path: string, timeoutMs: number, { signal, context }: CallOptions) {
    this.#path = path;
    this.#signal = signal;
    this.#context = context;
    this.#parent = context?.signal;
    if (timeoutMs >= 0) this.#deadlineMs = this.startedMs + timeoutMs;
    this.#look();
  }

  get #fired(): AbortSignal | undefined {
    if (this.#signal?.aborted) return this.#signal;
    return this.#parent?.aborted ? this.#parent : undefined;
  }

  /** Checks for signals that were aborted before this object listened to them. */
  #look(): void {
    if (this.#fired !== undefined) this.onAbort();
  }

  /**
   * Begins to watch the time and the signals. Runs only when an interceptor may fail to settle. Most calls
   * end without this function, because a timer for each call would cost as much as the rest of an
   * interceptor.
   */
  #watch(): void {
    if (this.#watching) return;
    this.#watching = true;
    this.#look();
    if (this.#reason !== 0) return;
    this.#arm();
    try {
      if (this.#signal !== undefined) listen(this.#signal, this);
      if (this.#parent !== undefined) listen(this.#parent, this);
    } catch (error) {
      // A signal of another library may throw. In this case the other listeners and the timer are removed,
      // too.
      this.end();
      throw error;
    }
  }

  /**
   * Returns a promise for the caller. It settles like `step`, but not much later than the time limit. Only
   * one step may wait at a time.
   */
  wait<T>(step: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      // These functions are not closures, so that V8's async stack traces reach the line that awaits the
      // call.
      step.then(resolve, reject);
      this.#watch();
      if (this.#reason !== 0) this.#grant();
    });
  }

  /** True when the deadline has passed or a signal was aborted. */
  get late(): boolean {
    return this.#reason !== 0;
  }

  /**
   * Runs when an interceptor has called `next` with this request. The interceptor may give the inner call
   * more time than the caller gave. Throws when no time is left.
   */
  enter({ timeoutMs, signal, context }: Pick<RpcRequest, 'timeoutMs' | 'signal' | 'context'>): void {
    if (!this.#watching) this.#look();
    if (this.#reason !== 0) throw this.#error('an interceptor called next() after the call had ended');
    const deadlineMs = timeoutMs === undefined ? Number.POSITIVE_INFINITY : this.startedMs + timeoutMs;
    if (deadlineMs > this.#deadlineMs) {
      this.#deadlineMs = deadlineMs;
      if (this.#watching) this.#arm();
    }
    this.bound = signal === this.#signal && context === this.#context;
    ++this.#underWay;
  }

  /**
   * Runs when the last call of next() has ended. `processed` is the value of the call that the interceptor
   * has made.
   */
  leave(processed: Processed): void {
    --this.#underWay;
    if (order.indexOf(processed) > order.indexOf(this.#sent)) this.#sent = processed;
  }

  /** Runs when the call has ended. */
  end(): void {
    if (!this.#watching) return;
    clearTimeout(this.#timer);
    if (this.#signal !== undefined) unlisten(this.#signal, this);
    if (this.#parent !== undefined) unlisten(this.#parent, this);
  }

  onAbort(): void {
    const cause: unknown = this.#fired?.reason;
    this.#give(reasonOf(cause), cause);
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const leftMs = this.#deadlineMs - clockMs();
    if (leftMs > timerMaxMs) return;
    this.#timer = setTimeout(() => this.#give(Reason.deadline, undefined), Math.max(0, leftMs));
  }

  #give(reason: number, cause: unknown): void {
    if (this.#reason !== 0) return;
    this.#reason = reason;
    this.#cause = cause;
    if (this.#watching) this.#grant();
  }

  /**
   * Rejects the caller's promise after a grace period. The calls that the interceptors made end by themselves
   * in that time, and their errors say more.
   */
  #grant(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => this.#reject?.(this.#error('an interceptor has not returned')),
      interceptorGraceMs,
    );
  }

  #error(detail: string): RpcError {
    const processed = this.#underWay > 0 && this.#sent === 'no' ? 'maybe' : this.#sent;
    return failure(this.#reason, this.#path, processed, detail, this.#cause);
  }
}

/** Returns the value of `processed` of an attempt's error. */
export function sentOf(error: unknown): Processed {
  return error instanceof RpcError ? error.processed : 'maybe';
}
