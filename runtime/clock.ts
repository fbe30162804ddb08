/**
 * The clocks of the runtime. Limits, pauses and ages are measured by `clockMs()`: monotonic, in milliseconds,
 * with one origin for TypeScript and native code, since a context is opened with this clock's time. Read on
 * every JS thread; a house test forbids other clocks.
 *
 * Fake timers of test frameworks (sinon, jest, vitest) replace `performance`, `performance.now`,
 * `process.hrtime` and `Date`. Peers, the system and native code still use real time, so these clocks read
 * the real time.
 */
import { performance } from 'node:perf_hooks';

/** A point of time on the clock of `clockMs()`. As a deadline, 0 means no deadline. */
export type ClockMs = number;

// The original function, which fake timers do not replace even when they are installed first. In Bun there is
// no such function.
const { now = performance.now } = Object.getPrototypeOf(performance) as Partial<typeof performance>;
const { hrtime } = process;
const { now: dateNow } = Date;

let replaced: (() => ClockMs) | undefined;

/**
 * Returns the time in milliseconds. A read costs as much as encoding a small message, so hot paths read it
 * once per turn (boundary/time/deadlines.ts).
 */
export function clockMs(): ClockMs {
  return replaced === undefined ? now.call(performance) : replaced();
}

/**
 * Replaces the machine's clock; undefined restores it. For tests that control the time.
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
 * Returns milliseconds since 1970, to compare with times from outside of the process, such as the validity of
 * a certificate.
 */
export function wallMs(): number {
  return dateNow.call(Date);
}
