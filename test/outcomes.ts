/**
 * Waits for the conditions that tests of calls need: an iteration of the event loop, a condition, or the
 * error with which a call ends.
 */
import type { RpcError } from 'rdma-rpc';
import { expect } from 'vitest';

/**
 * This limit is shorter than the time limit of a test, whose error only says that the time is over. The
 * functions are taken when this module is loaded, because tests fake the clock.
 */
const waitMs = Number(process.env.RDMA_RPC_UNTIL_MS ?? 100_000);
const now = performance.now.bind(performance);
const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Waits until the condition holds. Fails with the text of the condition when the condition has not become
 * true for a long time.
 */
export async function until(condition: () => boolean): Promise<void> {
  for (const endMs = now() + waitMs; !condition(); await turn())
    if (now() > endMs) expect.fail(`still not true after ${waitMs} ms: ${condition}`);
}

/**
 * Returns the result of `promise`. Fails with `what` when the promise has not settled for a long time, so
 * that the error names the operation that is stuck.
 */
export function comes<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = startTimer(() => reject(new Error(`${what} has not come after ${waitMs} ms`)), waitMs);
  });
  return Promise.race([promise, late]).finally(() => stopTimer(timer));
}

/** Resolves to the error with which a call ends. */
export const caught = (promise: Promise<unknown>): Promise<RpcError> =>
  comes(
    promise.then(
      () => Promise.reject(new Error('the call was answered')),
      (error: RpcError) => error,
    ),
    'the end of a call',
  );
