/** Stops timers whatever a test has made of the global functions. On the JS thread of the timer. */

/**
 * Stops an interval also while a test has replaced `clearInterval`: that of fake timers stops no timer of
 * Node that was started before it. Such an interval, once forgotten, keeps its process alive for ever.
 */
export function stopInterval(timer: NodeJS.Timeout | undefined): void {
  if (timer?.close === undefined) clearInterval(timer);
  else timer.close();
}
