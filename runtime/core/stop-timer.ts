/**
 * Stops timers even when a test has replaced the global functions. This file runs on the JS thread of the
 * timer.
 */

/**
 * Stops an interval, even if a test has replaced `clearInterval`. The `clearInterval` of fake timers does not
 * stop a timer of Node that was started earlier, and an interval that is never stopped keeps its process
 * alive for ever.
 */
export function stopInterval(timer: NodeJS.Timeout | undefined): void {
  if (timer?.close === undefined) clearInterval(timer);
  else timer.close();
}
