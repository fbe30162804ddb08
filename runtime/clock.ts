/**
 * The clocks of the runtime. Limits, pauses and ages are measured by `clockMs()`, which is monotonic and
 * counts milliseconds. TypeScript and native code count from the same origin, because native code gets this
 * clock's time when a context is opened. All JS threads read these clocks, and a house test forbids other
 * clocks.
 *
 * Fake timers of test frameworks (sinon, jest, vitest) replace `performance`, `performance.now`,
 * `process.hrtime` and `Date`. Peers, the system and native code still use the real time, so these clocks
 * read the real time, too.
 */
import { performance } from 'node:perf_hooks';

/** A point in time on the clock of `clockMs()`. As a deadline, 0 means no deadline. */
export type ClockMs = number;

// The original function. Fake timers do not replace it even when they are installed first. Bun has no such
// function.
const { now = performance.now } = Object.getPrototypeOf(performance) as Partial<typeof performance>;
const { hrtime } = process;
const { now: dateNow } = Date;

let replaced: (() => ClockMs) | undefined;

/**
 * Returns the time in milliseconds. Reading the clock costs as much as encoding a small message, so hot paths
 * read it once per turn (boundary/time/deadlines.ts).
 */
export function clockMs(): ClockMs {
  return replaced === undefined ? now.call(performance) : replaced();
}

/**
 * Replaces the machine's clock, for tests that control the time. `undefined` restores the machine's clock.
 */
export function replaceClock(clock: (() => ClockMs) | undefined): void {
  replaced = clock;
}

/**
 * Returns CLOCK_MONOTONIC in nanoseconds, as in the entries of the flight recorder. Other processes of this
 * machine read the same clock.
 */
export function systemNs(): number {
  return Number(hrtime.bigint());
}

/**
 * Returns the milliseconds since 1970, for comparison with times from outside of the process, such as the
 * validity of a certificate.
 */
export function wallMs(): number {
  return dateNow.call(Date);
}
