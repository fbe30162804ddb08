/**
 * Time limit and signals of a call with interceptors, which the calls that those make know as well: here for
 * an interceptor that does not come back. Each intercepted call of a client has one.
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
  /** By the clock of the turn, as the deadline of the call that it guards. */
  readonly startedMs: number = turnNow();
  readonly #path: string;
  readonly #signal: AbortSignal | undefined;
  readonly #context: HandlerContext | undefined;
  /** The signal of `#context`. */
  readonly #parent: AbortSignal | undefined;
  #deadlineMs = Number.POSITIVE_INFINITY;
  /** The signals are listened to, and the timer runs. */
  #watching = false;
  /** For the deadline, then for the grace. It keeps the process alive: a call with a limit settles. */
  #timer: NodeJS.Timeout | undefined;
  /** Of the promise that the caller waits for, or last did. */
  #reject: ((error: unknown) => void) | undefined;
  /** Why it is late, 0 while it is not. */
  #reason = 0;
  #cause: unknown;
  #sent: Processed = 'no';
  #underWay = 0;
  /** The call that was begun last has the signals of this one, so it ends with it. */
  bound = false;

  /** `timeoutMs`: below 0 for none. */
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

  /** For signals that have fired while nobody listened to them. */
  #look(): void {
    if (this.#fired !== undefined) this.onAbort();
  }

  /**
   * Begins to watch the time and the signals. Only for a call whose interceptors may not come back: most
   * calls are over without, and a timer for each of them costs as much as the rest of an interceptor.
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
      // A signal of another library may throw: then neither the others nor the timer may keep the call.
      this.end();
      throw error;
    }
  }

  /**
   * What the caller is to wait for: settles as `step` does, but not much later than the call may take. One
   * step at a time.
   */
  wait<T>(step: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      // Not closures: V8 follows these functions to the line that awaits the call.
      step.then(resolve, reject);
      this.#watch();
      if (this.#reason !== 0) this.#grant();
    });
  }

  /** The time is up, or a signal has fired. */
  get late(): boolean {
    return this.#reason !== 0;
  }

  /**
   * An interceptor has called `next` with this request. One that gives its call more time than the caller did
   * has it; throws when there is none left.
   */
  enter({ timeoutMs, signal, context }: Pick<RpcRequest, 'timeoutMs' | 'signal' | 'context'>): void {
    if (!this.#watching) this.#look();
    if (this.#reason !== 0) throw this.#error('an interceptor called next() after that');
    const deadlineMs = timeoutMs === undefined ? Number.POSITIVE_INFINITY : this.startedMs + timeoutMs;
    if (deadlineMs > this.#deadlineMs) {
      this.#deadlineMs = deadlineMs;
      if (this.#watching) this.#arm();
    }
    this.bound = signal === this.#signal && context === this.#context;
    ++this.#underWay;
  }

  /** That call has ended, and this is what became of its request. */
  leave(processed: Processed): void {
    --this.#underWay;
    if (order.indexOf(processed) > order.indexOf(this.#sent)) this.#sent = processed;
  }

  /** The call is over. */
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

  /** The calls of the interceptors end by themselves, and their errors say more: those come first. */
  #grant(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => this.#reject?.(this.#error('an interceptor has not come back')),
      interceptorGraceMs,
    );
  }

  #error(detail: string): RpcError {
    const processed = this.#underWay > 0 && this.#sent === 'no' ? 'maybe' : this.#sent;
    return failure(this.#reason, this.#path, processed, detail, this.#cause);
  }
}

/** What an attempt's error says of its request. */
export function sentOf(error: unknown): Processed {
  return error instanceof RpcError ? error.processed : 'maybe';
}
