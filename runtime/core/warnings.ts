/**
 * What an application is told of its handlers when it has not asked to be told: a warning of Node's, on
 * standard error. Used by everything that runs handlers: servers, reverse calls, the adapters for gRPC.
 */

import { inspect } from 'node:util';
import { handlerErrorKinds, handlerErrorSumMs, handlerErrorText } from '../limits.ts';
import { guardedInRoot, textOf } from './foreign.ts';

/** `detail`: further lines, such as a stack. */
export type Warn = (text: string, detail?: string) => void;

export const processWarning: Warn = (text, detail) =>
  process.emitWarning(text, { type: 'RdmaRpcWarning', ...(detail === undefined ? {} : { detail }) });

/** Reports a fault of this library, where others have to go on whatever one of them has failed with. */
export function warnOfFault(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error), 'RdmaRpcInternalError');
}

/**
 * Told about a handler's error that is no RpcError, or a response that cannot be encoded. The caller only
 * learns INTERNAL.
 */
export type OnHandlerError = (error: unknown, method: string) => void;

/**
 * What the function given as `authorize` has failed with: not the handler, which has not run.
 * `onHandlerError` hears of it, too.
 */
export class AuthorizeFailed extends Error {
  readonly #own = true;

  constructor(cause: unknown) {
    super(`authorize has failed: ${textOf(cause)}`, { cause });
  }

  /** Asked of whatever a handler throws, and `instanceof` would run the traps of a proxy. */
  static is(error: unknown): boolean {
    return typeof error === 'object' && error !== null && #own in error;
  }
}

/**
 * What has not gone to the caller with an error, and why: nothing has failed in the handler. `onHandlerError`
 * hears of it, too.
 */
export class AnswerCut extends Error {
  readonly #own = true;

  static is(error: unknown): error is AnswerCut {
    return typeof error === 'object' && error !== null && #own in error;
  }
}

/** With stack and causes, whatever it is. */
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
  return `${what} caller learns no more than that`;
}

/** Errors with the same are one kind. */
function kindOf(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message.slice(0, 200)}` : typeof error;
  } catch {
    return 'an error that cannot be shown';
  }
}

/** Those of one method since the last sum. */
class Errors {
  /** How often each kind has come since it was shown. */
  readonly again = new Map<string, number>();
  /** Kinds for which there was no room. */
  others = 0;
}

export class HandlerErrors {
  readonly #listener: OnHandlerError | undefined;
  readonly #warn: Warn;
  readonly #methods = new Map<string, Errors>();
  #timer: NodeJS.Timeout | undefined;

  /** `listener`: whom the application has asked to be told; without one `warn` is. */
  constructor(listener: OnHandlerError | undefined, warn: Warn = processWarning) {
    this.#listener = listener;
    this.#warn = warn;
  }

  /** Never throws: what a listener throws is shown, and no more. */
  report(error: unknown, method: string): void {
    guardedInRoot(`${method}: onHandlerError`, () =>
      this.#listener === undefined ? this.#show(error, method) : this.#listener(error, method),
    );
  }

  /** Shows what has only been counted. */
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
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /**
   * The same kind of error is shown once, with its stack, and then counted: a handler may fail a million
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
      const text = `${method}: ${summary(error)} (onHandlerError hears of such errors instead of this warning)`;
      this.#warn(text, described(error));
    }
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => this.sum(), handlerErrorSumMs);
    this.#timer.unref();
  }
}
