/**
 * Warnings about handlers for an application that has not asked for them otherwise: Node's warnings, on
 * standard error. Used by everything that runs handlers: servers, reverse calls, the adapters for gRPC.
 */

import { inspect } from 'node:util';
import { handlerErrorKinds, handlerErrorSumMs, handlerErrorText } from '../limits.ts';
import { guardedInRoot, textOf } from './foreign.ts';
import { stopInterval } from './stop-timer.ts';

/** `detail` has further lines, such as a stack. */
export type Warn = (text: string, detail?: string) => void;

export const processWarning: Warn = (text, detail) =>
  process.emitWarning(text, { type: 'RdmaRpcWarning', ...(detail === undefined ? {} : { detail }) });

/** Reports a fault of this library, where other work has to go on after it. */
export function warnOfFault(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error), 'RdmaRpcInternalError');
}

/**
 * Called with a handler's error that is not an RpcError, or when a response cannot be encoded. The caller
 * only sees INTERNAL.
 */
export type OnHandlerError = (error: unknown, method: string) => void;

/**
 * The failure of the function given as `authorize`: the handler has not run. `onHandlerError` is called with
 * it, too.
 */
export class AuthorizeFailed extends Error {
  readonly #own = true;

  constructor(cause: unknown) {
    super(`authorize has failed: ${textOf(cause)}`, { cause });
  }

  /** Used on whatever a handler throws; `instanceof` would run the traps of a proxy. */
  static is(error: unknown): boolean {
    return typeof error === 'object' && error !== null && #own in error;
  }
}

/**
 * Parts of an error that were not sent to the caller, and why: the handler itself has not failed.
 * `onHandlerError` is called with it, too.
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

/** Errors with the same result are counted as one kind. */
function kindOf(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message.slice(0, 200)}` : typeof error;
  } catch {
    return 'an error that cannot be shown';
  }
}

/** Errors of one method since the last summary. */
class Errors {
  /** How often each kind has occurred since it was shown. */
  readonly again = new Map<string, number>();
  /** Number of errors of kinds for which there was no room. */
  others = 0;
}

export class HandlerErrors {
  readonly #listener: OnHandlerError | undefined;
  readonly #warn: Warn;
  readonly #methods = new Map<string, Errors>();
  #timer: NodeJS.Timeout | undefined;

  /** `listener` is the function given by the application; without one, `warn` is called. */
  constructor(listener: OnHandlerError | undefined, warn: Warn = processWarning) {
    this.#listener = listener;
    this.#warn = warn;
  }

  /** Never throws: an exception of the listener is shown as a warning. */
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
   * Each kind of error is shown once, with its stack, and then counted, since a handler may fail a million
   * times a second.
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
