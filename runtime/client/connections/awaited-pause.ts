/**
 * The pause between two attempts to connect while calls wait for the connection. A lone server that restarts
 * is noticed within a second, however long the pauses would have grown by then, and each waiting call gets
 * one more attempt shortly before its deadline. The server is asked at most four times a second, and a server
 * that has said when to come again is asked then. Used by endpoints.
 */
import { attemptGapMs, awaitedPauseMs, lastAttemptMs } from './limits.ts';

/** When the calls that wait end, ms on the clock of `clockMs()`. Infinity for those without a deadline. */
export type Deadlines = Iterable<number>;

/**
 * Returns the pause, in ms: no longer than `pauseMs`. `firstMs` is the first pause of the channel, which an
 * application may have made longer than the limit. `random` is from 0 to 1.
 */
export function awaitedPause(
  pauseMs: number,
  firstMs: number,
  random: number,
  nowMs: number,
  deadlines: Deadlines,
): number {
  let pause = Math.min(pauseMs, Math.max(firstMs, awaitedPauseMs) * (1 - random / 2));
  for (const deadlineMs of deadlines) {
    const lastMs = deadlineMs - lastAttemptMs - nowMs;
    if (lastMs >= attemptGapMs && lastMs < pause) pause = lastMs;
  }
  return pause;
}
