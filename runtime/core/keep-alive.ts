/**
 * Keeps the process alive while a program waits for an answer of its peer, because an idle connection does
 * not. memory/remotes.ts and verbs/queue-pair.ts use this file on the JS thread of the waiting program.
 */
import { stopInterval } from './stop-timer.ts';

/** The longest interval that timers take. */
const longestMs = 2 ** 31 - 1;

/** Settles as `promise` does, and keeps the process alive until then. */
export async function keepingAlive<T>(promise: Promise<T>): Promise<T> {
  const alive = setInterval(() => undefined, longestMs);
  try {
    return await promise;
  } finally {
    stopInterval(alive);
  }
}
