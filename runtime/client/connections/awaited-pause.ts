/**
 * The pause between two attempts to connect while calls wait for the connection. The pauses stay short while
 * calls wait, so that the restart of a single server is noticed within a second. Each waiting call gets one
 * more attempt shortly before its deadline. There are at most four attempts a second. When a server has given
 * a retry-after time, the next attempt is made at that time. Endpoints use this file.
 */
import { attemptGapMs, awaitedPauseMs, lastAttemptMs } from './limits.ts';

/** The deadlines of the waiting calls, in ms on the clock of `clockMs()`. Infinity stands for no deadline. */
export type Deadlines = Iterable<number>;

/**
 * Returns the pause in ms, at most `pauseMs`. `firstMs` is the first pause of the channel, which an
 * application may have set to more than the limit. `random` is a number from 0 to 1.
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
