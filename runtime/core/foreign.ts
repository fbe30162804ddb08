/**
 * Values and functions of the application, which may do anything when they are looked at or called: getters
 * that throw, proxies, thenables, functions that reject. What goes wrong in them must stay with the call that
 * they belong to, or with nothing at all. Used wherever user code is called.
 */

import { inspect } from 'node:util';
import { clockMs } from '../clock.ts';
import { logLinesPerSecond } from '../limits.ts';
import { inRoot } from './scopes.ts';

export { disown } from '../codec/disown.ts';

/** What was thrown, for people. */
export function textOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return 'an error that cannot be shown';
  }
}

/**
 * A promise of what a thenable becomes, undefined for any other value. `then` is asked for once. Throws what
 * a getter or a proxy throws.
 */
export function promiseOf(value: unknown): Promise<unknown> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  // Its own `then` may be another than that of promises, but nobody looks at it.
  if (value instanceof Promise) return value;
  const { then } = value as { then?: unknown };
  if (typeof then !== 'function') return undefined;
  return new Promise((resolve, reject) => then.call(value, resolve, reject));
}

/** Calls what nobody waits for. What it throws or rejects with is shown, and no more. `what`: for people. */
export function guarded(what: string, call: () => unknown): void {
  try {
    promiseOf(call())?.catch((fault: unknown) => show(what, fault));
  } catch (fault) {
    show(what, fault);
  }
}

/** The same for a function of a server, a channel or the process: it runs without the stores of any call. */
export function guardedInRoot(what: string, call: () => unknown): void {
  guarded(what, () => inRoot(call));
}

/**
 * The same for what a call has to do with: what it throws comes out, and only a rejection, which comes too
 * late for that, is shown.
 */
export function heard(what: string, result: unknown): void {
  guarded(what, () => result);
}

/** How often each function has failed in this second. */
const failed = new Map<string, number>();
let second = 0;

/** Peers can make functions fail as often as they like, so only so many a second are shown of each. */
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
