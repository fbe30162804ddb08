/**
 * Provides a clock that a test of this folder can advance at once by a call's time limit. A deadline then
 * passes exactly at the step where the test wants it, even on a slow machine. Every part of the runtime sees
 * this time: JS code, and native code in the times that it passes to JS.
 */

import { deadlines } from '../../runtime/boundary/time/deadlines.ts';
import { clockMs, replaceClock } from '../../runtime/clock.ts';
import type { NativeContext } from '../../runtime/native/native.ts';

const real = performance.now.bind(performance);
let aheadMs = 0;

replaceClock(() => real() + aheadMs);

/** Advances the clock by `ms`, and runs the timers that are due by then. */
export function passTime(ms: number): void {
  aheadMs += ms;
  deadlines.run(clockMs());
}

/**
 * Makes the `clock` of a context that was just created follow this clock. Native code got the time once, at
 * its creation.
 */
export function follow(clock: NativeContext['clock']): NativeContext['clock'] {
  const knownMs = aheadMs;
  const nowMs = (): number => clock[0]! + aheadMs - knownMs;
  return new Proxy(clock, { get: (target, key) => (key === '0' ? nowMs() : Reflect.get(target, key)) });
}
