/**
 * The clocks of the runtime. Limits, pauses and ages are measured by `clockMs()`: monotonic, in milliseconds,
 * with one origin for TypeScript and native code, since a context is opened with this clock's time. Read on
 * every JS thread; a house test forbids other clocks.
 *
 * Fake timers of test frameworks (sinon, jest, vitest) put functions of their own in the place of
 * `performance`, `performance.now`, `process.hrtime` and `Date`. Peers, the system and native code live by
 * real time all the same, so these clocks read the real time.
 */
import { performance } from 'node:perf_hooks';

/** A point of time on the clock of `clockMs()`. As a deadline, 0 means that there is none. */
export type ClockMs = number;

// The function behind the one that fake timers replace, also where they were there first. Bun has none behind
// it.
const { now = performance.now } = Object.getPrototypeOf(performance) as Partial<typeof performance>;
const { hrtime } = process;
const { now: dateNow } = Date;

let replaced: (() => ClockMs) | undefined;

/**
 * The time. A read costs as much as encoding a small message, so hot paths read it once for a turn
 * (boundary/time/deadlines.ts).
 */
export function clockMs(): ClockMs {
  return replaced === undefined ? now.call(performance) : replaced();
}

/**
 * Puts another clock in the place of the machine's; undefined: the machine's again. For tests that own the
 * time.
 */
export function replaceClock(clock: (() => ClockMs) | undefined): void {
  replaced = clock;
}

/**
 * CLOCK_MONOTONIC in nanoseconds, as the rows of the flight recorder have it. Other processes of this machine
 * read the same clock.
 */
export function systemNs(): number {
  return Number(hrtime.bigint());
}

/**
 * Milliseconds since 1970: for what is compared with times of the world outside, such as the validity of a
 * certificate.
 */
export function wallMs(): number {
  return dateNow.call(Date);
}
