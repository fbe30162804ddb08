/**
 * Handles values and functions of the application. Such values may run code of the application when they are
 * inspected or called. They may be proxies or thenables, have getters that throw, or be functions that
 * reject. Their failures may affect only the call to which they belong. This file is used wherever user code
 * is called.
 */

import { inspect } from 'node:util';
import { clockMs } from '../clock.ts';
import { logLinesPerSecond } from '../limits.ts';
import { inRoot } from './scopes.ts';

export { disown } from '../codec/disown.ts';

/** Returns the text of a thrown value. */
export function textOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return 'an error that cannot be shown';
  }
}

/**
 * Returns a promise for a thenable, or undefined for any other value. Reads `then` once. Rethrows the errors
 * of a getter or a proxy.
 */
export function promiseOf(value: unknown): Promise<unknown> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  // A `then` property that a promise itself has is ignored.
  if (value instanceof Promise) return value;
  const { then } = value as { then?: unknown };
  if (typeof then !== 'function') return undefined;
  return new Promise((resolve, reject) => then.call(value, resolve, reject));
}

/**
 * Calls a function whose result is not used. If the function throws or rejects, a warning is shown. `what`
 * names the function in the warning.
 */
export function guarded(what: string, call: () => unknown): void {
  try {
    promiseOf(call())?.catch((fault: unknown) => show(what, fault));
  } catch (fault) {
    show(what, fault);
  }
}

/**
 * Does the same as `guarded` for a function of a server, a channel or the process. The function runs without
 * the async context of any call.
 */
export function guardedInRoot(what: string, call: () => unknown): void {
  guarded(what, () => inRoot(call));
}

/**
 * Shows a warning when a function that belongs to a call has returned a promise that rejects. An exception of
 * such a function reaches the call directly; a rejection comes too late for the call.
 */
export function heard(what: string, result: unknown): void {
  guarded(what, () => result);
}

/** Number of failures of each function in the current second. */
const failed = new Map<string, number>();
let second = 0;

/**
 * Peers can make functions fail as often as they like, so the number of warnings per second is limited for
 * each function.
 */
function show(what: string, fault: unknown): void {
  const now = Math.floor(clockMs() / 1000);
  if (now !== second) failed.clear();
  second = now;
  const times = (failed.get(what) ?? 0) + 1;
  failed.set(what, times);
  if (times > logLinesPerSecond) return;
  let detail: string;
  try {
    detail = inspect(fault, { depth: 3 });
  } catch {
    detail = 'an error that cannot be shown';
  }
  const last = times === logLinesPerSecond ? ' (further times of this second are left out)' : '';
  process.emitWarning(`${what} has failed${last}`, { type: 'RdmaRpcWarning', detail });
}
