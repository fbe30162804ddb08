/**
 * Signals of `AbortSignal.timeout()`, which a program usually makes for a single call. Listening to a new
 * signal costs as much as several calls, and most calls end long before the timeout. Only a timer fires such
 * a signal, so a call starts to listen a few ms later, if the call is still in flight. The calls of a client
 * use this file on their JS thread.
 */
import { inRoot } from './scopes.ts';

/** A call whose signal is of `AbortSignal.timeout()`. */
export interface LateListener {
  /** Starts to listen, unless the call has ended. This function must not throw. */
  listenNow(): void;
}

/**
 * Time in ms after which a call starts to listen. A signal that fired earlier is noticed late by at most this
 * time.
 */
const afterMs = 3;

// This is the original `setTimeout`. Node's real timers abort these signals even when a test has replaced the
// global function by a fake timer.
const soon = setTimeout;
let waiting: LateListener[] = [];

/**
 * The property by which Node marks signals of `AbortSignal.timeout()`. It is undefined when Node has no such
 * property, and null until it has been looked up.
 */
let mark: symbol | undefined | null = null;

function findMark(): symbol | undefined {
  try {
    return Object.getOwnPropertySymbols(AbortSignal.timeout(1)).find(
      ({ description }) => description === 'kTimeout',
    );
  } catch {
    return undefined;
  }
}

/** Returns whether only a timer can fire the signal. Returns false when the kind of the signal is unknown. */
export function isTimeoutSignal(signal: AbortSignal): boolean {
  if (mark === null) mark = findMark();
  return mark !== undefined && Reflect.get(signal, mark) === true;
}

function listenAll(): void {
  const due = waiting;
  waiting = [];
  for (const each of due) each.listenNow();
}

/** Makes `one` start to listen after a few ms. */
export function listenLater(one: LateListener): void {
  if (waiting.length === 0) inRoot(() => soon(listenAll, afterMs)).unref();
  waiting.push(one);
}
