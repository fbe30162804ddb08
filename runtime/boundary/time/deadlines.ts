/**
 * The one timer wheel of this JS thread, driven by a Node timer that never keeps the process alive by itself,
 * and the time that deadlines are computed from. A turn is the JS that runs from one entry by native code,
 * timer or event to the next.
 */

import { clockMs } from '../../clock.ts';
import { inRoot } from '../../core/scopes.ts';
import { TimerWheel } from './timer-wheel.ts';

/** The wire has 32 bits for the time left; a longer one is clamped, and ends at the caller. */
const timeoutUsMax = 0xffff_ffff;

let timer: NodeJS.Timeout | undefined;
/** The first deadline of the turn has been made. */
let open = false;
/** A microtask will close the turn. */
let closing = false;

export const deadlines: TimerWheel = new TimerWheel(clockMs(), (delayMs) => {
  clearTimeout(timer);
  // Whoever asks for it now, it is for the deadlines of all.
  timer = inRoot(() => setTimeout(onTimer, delayMs));
  timer.unref();
});

function onTimer(): void {
  open = false;
  deadlines.run(clockMs());
}

/** Native code has entered JS and read the clock. */
export function newTurn(nowMs: number): void {
  open = false;
  deadlines.refresh(nowMs);
}

/** Ends the turn, if one is open, so that the next deadline reads the clock. */
export function closeTurn(): void {
  closing = false;
  if (!open) return;
  open = false;
  deadlines.endTurn(clockMs());
}

/**
 * Ends the turn, if one is open, when the JS that runs now has: what waits is looked at by nobody who would.
 */
export function closeTurnSoon(): void {
  if (!open || closing) return;
  closing = true;
  queueMicrotask(closeTurn);
}

/**
 * Time to compute a deadline from: read for the first of a turn; for those that follow, the wheel makes up
 * for what passes until its end.
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

/** From the current turn to `deadlineMs`, as the wire has it. 0, none, stays 0; what has passed is 1. */
export function timeLeftUs(deadlineMs: number): number {
  if (deadlineMs === 0) return 0;
  return Math.min(timeoutUsMax, Math.max(1, (deadlineMs - deadlines.now) * 1000));
}
