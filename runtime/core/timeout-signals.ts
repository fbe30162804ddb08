/**
 * Signals of `AbortSignal.timeout()`, which a program makes for one call each. To listen to a fresh one costs
 * as much as several calls, and most calls are over long before. Only a timer fires such a signal, so a call
 * begins to listen some ms later, if it is still under way. Used by the calls of a client, on their JS
 * thread.
 */
import { inRoot } from './scopes.ts';

/** A call with such a signal. */
export interface LateListener {
  /** Begins to listen, unless the call is over. Must not throw. */
  listenNow(): void;
}

/** So much later than it has fired a signal may be heard of. */
const afterMs = 3;

// That of this moment: tests put clocks of their own in place of the global one, and signals are fired by
// Node's.
const soon = setTimeout;
let waiting: LateListener[] = [];

/** The property by which Node knows its own; undefined where there is none, null until somebody asks. */
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

/** Whether only a timer fires the signal. False for one of which that is not known. */
export function isTimeoutSignal(signal: AbortSignal): boolean {
  if (mark === null) mark = findMark();
  return mark !== undefined && Reflect.get(signal, mark) === true;
}

function listenAll(): void {
  const due = waiting;
  waiting = [];
  for (const each of due) each.listenNow();
}

/** `one` listens in some ms. */
export function listenLater(one: LateListener): void {
  if (waiting.length === 0) inRoot(() => soon(listenAll, afterMs)).unref();
  waiting.push(one);
}
