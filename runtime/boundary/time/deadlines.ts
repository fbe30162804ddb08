/**
 * The timer wheel of this JS thread, and the time from which deadlines are computed. One Node timer drives
 * the wheel; by itself it never keeps the process alive. A *turn* is the JS that runs between two entries
 * from native code, a timer or an event: one callback of an event-loop iteration.
 */

import { clockMs } from '../../clock.ts';
import { inRoot } from '../../core/scopes.ts';
import { TimerWheel } from './timer-wheel.ts';

/**
 * The wire has 32 bits for the remaining time, so a longer time is sent as the maximum. The caller's own
 * timer still ends the call in time.
 */
const timeoutUsMax = 0xffff_ffff;

let timer: NodeJS.Timeout | undefined;
/** True after the first deadline of the turn has been computed. */
let open = false;
/** True when a microtask will close the turn. */
let closing = false;

export const deadlines: TimerWheel = new TimerWheel(clockMs(), (delayMs) => {
  clearTimeout(timer);
  // Create the timer in the root context, because it serves the deadlines of all callers, not only of the
  // current one.
  timer = inRoot(() => setTimeout(onTimer, delayMs));
  timer.unref();
});

function onTimer(): void {
  open = false;
  deadlines.run(clockMs());
}

/** Begins a turn: native code has entered JS and read the clock. */
export function newTurn(nowMs: number): void {
  open = false;
  deadlines.refresh(nowMs);
}

/** Ends the turn, if a turn is open, so that the next deadline reads the clock. */
export function closeTurn(): void {
  closing = false;
  if (!open) return;
  open = false;
  deadlines.endTurn(clockMs());
}

/**
 * Ends the turn, if a turn is open, in a microtask after the JS that is running now. Call it where nothing
 * else would close the turn.
 */
export function closeTurnSoon(): void {
  if (!open || closing) return;
  closing = true;
  queueMicrotask(closeTurn);
}

/**
 * Returns the time from which to compute a deadline. The first deadline of a turn reads the clock. For the
 * following deadlines the wheel later adds the time that the turn has taken.
 */
export function turnNow(): number {
  if (!open) {
    open = true;
    deadlines.refresh(clockMs());
  } else {
    closeTurnSoon();
  }
  return deadlines.now;
}

/**
 * Returns the microseconds from the current turn to `deadlineMs`, in the form in which they are sent. 0 means
 * no deadline and stays 0; a deadline that has passed is sent as 1.
 */
export function timeLeftUs(deadlineMs: number): number {
  if (deadlineMs === 0) return 0;
  return Math.min(timeoutUsMax, Math.max(1, (deadlineMs - deadlines.now) * 1000));
}
