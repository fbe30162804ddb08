/**
 * Time limit and signals of a call with interceptors, which the calls that those make know as well: here for an interceptor that does not come
 * back. Each intercepted call of a client has one.
 */
import { clockMs } from '../clock.ts';
import { type Abortable, listen, unlisten } from '../core/abort-listeners.ts';
import { failure, reasonOf } from '../core/errors/failure.ts';
import { type Processed, RpcError } from '../core/errors/rpc-error.ts';
import type { CallOptions } from '../core/types.ts';
import { interceptorGraceMs, timerMaxMs } from '../limits.ts';
import { Reason } from '../native.ts';

const order: readonly Processed[] = ['no', 'maybe', 'yes'];

export class CallGuard implements Abortable {
  readonly startedMs: number = clockMs();
  readonly #path: string;
  readonly #signals: readonly AbortSignal[];
  #deadlineMs = Number.POSITIVE_INFINITY;
  /** For the deadline, then for the grace. It keeps the process alive: a call with a limit settles. */
  #timer: NodeJS.Timeout | undefined;
  /** Of the promise that the caller waits for, or last did. */
  #reject: ((error: unknown) => void) | undefined;
  /** Why it is late, 0 while it is not. */
  #reason = 0;
  #cause: unknown;
  #sent: Processed = 'no';
  #underWay = 0;

  /** `timeoutMs`: below 0 for none. */
  constructor(path: string, timeoutMs: number, { signal, context }: CallOptions) {
    this.#path = path;
    this.#signals = [signal, context?.signal].filter((each) => each !== undefined);
    if (timeoutMs >= 0) this.#limit(this.startedMs + timeoutMs);
    const fired = this.#signals.find(({ aborted }) => aborted);
    if (fired !== undefined) this.onAbort();
    else this.#listen();
  }

  /** A signal of another library may throw: then neither the others nor the timer may keep the call. */
  #listen(): void {
    try {
      for (const each of this.#signals) listen(each, this);
    } catch (error) {
      this.end();
      throw error;
    }
  }

  /** What the caller is to wait for: settles as `step` does, but not much later than the call may take. One step at a time. */
  wait<T>(step: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      // Not closures: V8 follows these functions to the line that awaits the call.
      step.then(resolve, reject);
      if (this.#reason !== 0) this.#grant();
    });
  }

  /** The time is up, or a signal has fired. */
  get late(): boolean {
    return this.#reason !== 0;
  }

  /** An interceptor has called `next`, with this limit. One that gives its call more time than the caller did has it; throws when there is none left. */
  enter(timeoutMs: number | undefined): void {
    if (this.#reason !== 0) throw this.#error('an interceptor called next() after that');
    const deadlineMs = timeoutMs === undefined ? Number.POSITIVE_INFINITY : this.startedMs + timeoutMs;
    if (deadlineMs > this.#deadlineMs) this.#limit(deadlineMs);
    ++this.#underWay;
  }

  /** That call has ended, and this is what became of its request. */
  leave(processed: Processed): void {
    --this.#underWay;
    if (order.indexOf(processed) > order.indexOf(this.#sent)) this.#sent = processed;
  }

  /** The call is over. */
  end(): void {
    clearTimeout(this.#timer);
    for (const each of this.#signals) unlisten(each, this);
  }

  onAbort(): void {
    const cause: unknown = this.#signals.find(({ aborted }) => aborted)?.reason;
    this.#give(reasonOf(cause), cause);
  }

  #limit(deadlineMs: number): void {
    this.#deadlineMs = deadlineMs;
    clearTimeout(this.#timer);
    const leftMs = deadlineMs - clockMs();
    if (leftMs <= timerMaxMs) this.#timer = setTimeout(() => this.#give(Reason.deadline, undefined), leftMs);
  }

  #give(reason: number, cause: unknown): void {
    if (this.#reason !== 0) return;
    this.#reason = reason;
    this.#cause = cause;
    this.#grant();
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
