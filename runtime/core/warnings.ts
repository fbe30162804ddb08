/**
 * Reports the errors of handlers to the application's `onHandlerError`, or as Node warnings on standard error
 * when the application has no such function. Everything that runs handlers uses this file: servers, reverse
 * calls and the adapters for gRPC.
 */

import { inspect } from 'node:util';
import { handlerErrorKinds, handlerErrorSumMs, handlerErrorText } from '../limits.ts';
import { guardedInRoot, textOf } from './foreign.ts';
import { stopInterval } from './stop-timer.ts';

/** Shows a warning. `detail` has further lines, such as a stack. */
export type Warn = (text: string, detail?: string) => void;

export const processWarning: Warn = (text, detail) =>
  process.emitWarning(text, { type: 'RdmaRpcWarning', ...(detail === undefined ? {} : { detail }) });

/** Shows a fault of this library as a warning, where other work has to go on after the fault. */
export function warnOfFault(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error), 'RdmaRpcInternalError');
}

/**
 * Receives a handler's error that is not an RpcError, or the error of a response that cannot be encoded. The
 * caller only sees INTERNAL.
 */
export type OnHandlerError = (error: unknown, method: string) => void;

/**
 * The failure of the function given as `authorize`. The handler has not run. `onHandlerError` is called with
 * this error, too.
 */
export class AuthorizeFailed extends Error {
  readonly #own = true;

  constructor(cause: unknown) {
    super(`authorize has failed: ${textOf(cause)}`, { cause });
  }

  /**
   * Returns whether `error` is an AuthorizeFailed. A handler may throw any value, and `instanceof` would run
   * the traps of a proxy.
   */
  static is(error: unknown): boolean {
    return typeof error === 'object' && error !== null && #own in error;
  }
}

/**
 * Describes which parts of an error were not sent to the caller, and why. The handler itself has not failed.
 * `onHandlerError` is called with this error, too.
 */
export class AnswerCut extends Error {
  readonly #own = true;

  static is(error: unknown): error is AnswerCut {
    return typeof error === 'object' && error !== null && #own in error;
  }
}

/** Describes any thrown value, with stack and causes. */
function described(error: unknown): string {
  let text: string;
  try {
    text = inspect(error, { depth: 3 });
  } catch {
    text = 'an error that cannot be shown';
  }
  return text.length <= handlerErrorText ? text : `${text.slice(0, handlerErrorText)} …`;
}

function summary(error: unknown): string {
  if (AnswerCut.is(error)) return error.message;
  const what = AuthorizeFailed.is(error)
    ? 'authorize failed, the handler has not run, and the'
    : 'the handler failed, and its';
  return `${what} caller gets no details`;
}

/** Returns the kind of an error. Errors of the same kind are counted together. */
function kindOf(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message.slice(0, 200)}` : typeof error;
  } catch {
    return 'an error that cannot be shown';
  }
}

/** Errors of one method since the last summary. */
class Errors {
  /** The number of errors of each kind since that kind was last shown. */
  readonly again = new Map<string, number>();
  /** Number of errors whose kinds could not be recorded because the table was full. */
  others = 0;
}

export class HandlerErrors {
  readonly #listener: OnHandlerError | undefined;
  readonly #warn: Warn;
  readonly #methods = new Map<string, Errors>();
  #timer: NodeJS.Timeout | undefined;

  /** `listener` is the function given by the application. When it is undefined, `warn` is called instead. */
  constructor(listener: OnHandlerError | undefined, warn: Warn = processWarning) {
    this.#listener = listener;
    this.#warn = warn;
  }

  /** Reports an error of a handler. Never throws: an exception of the listener is shown as a warning. */
  report(error: unknown, method: string): void {
    guardedInRoot(`${method}: onHandlerError`, () =>
      this.#listener === undefined ? this.#show(error, method) : this.#listener(error, method),
    );
  }

  /** Shows the errors that were only counted. */
  sum(): void {
    for (const [method, errors] of this.#methods) {
      for (const [kind, times] of errors.again) {
        if (times === 0) errors.again.delete(kind);
        else
          this.#warn(
            `${method}: the handler has failed ${times} more ${times === 1 ? 'time' : 'times'} with ${kind}`,
          );
        if (times > 0) errors.again.set(kind, 0);
      }
      if (errors.others > 0)
        this.#warn(`${method}: the handler has failed ${errors.others} more times with other errors`);
      errors.others = 0;
      if (errors.again.size === 0) this.#methods.delete(method);
    }
    if (this.#methods.size > 0) return;
    stopInterval(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Shows each kind of error once, with its stack, and then only counts it, because a handler may fail a
   * million times a second.
   */
  #show(error: unknown, method: string): void {
    let errors = this.#methods.get(method);
    if (errors === undefined) {
      errors = new Errors();
      this.#methods.set(method, errors);
    }
    const kind = kindOf(error);
    const again = errors.again.get(kind);
    if (again !== undefined) {
      errors.again.set(kind, again + 1);
    } else if (errors.again.size >= handlerErrorKinds) {
      ++errors.others;
    } else {
      errors.again.set(kind, 0);
      const text = `${method}: ${summary(error)} (onHandlerError gets such errors instead of this warning)`;
      this.#warn(text, described(error));
    }
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => this.sum(), handlerErrorSumMs);
    this.#timer.unref();
  }
}
