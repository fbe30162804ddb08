/** What tests of calls wait for: a turn of the event loop, a condition, the error that a call ends with. */
import type { RpcError } from 'rdma-rpc';
import { expect } from 'vitest';

/**
 * Before the time limit of a test, which says nothing but that it is over. Taken here, since tests fake the
 * clock.
 */
const waitMs = Number(process.env.RDMA_RPC_UNTIL_MS ?? 100_000);
const now = performance.now.bind(performance);
const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Fails, with the condition, when it has not come true for long. */
export async function until(condition: () => boolean): Promise<void> {
  for (const endMs = now() + waitMs; !condition(); await turn())
    if (now() > endMs) expect.fail(`still not true after ${waitMs} ms: ${condition}`);
}

/**
 * What `promise` comes to. Fails, with `what`, when it has not settled for long: a bug that keeps it from
 * coming is to have a name.
 */
export function comes<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = startTimer(() => reject(new Error(`${what} has not come after ${waitMs} ms`)), waitMs);
  });
  return Promise.race([promise, late]).finally(() => stopTimer(timer));
}

/** The error that a call ends with. */
export const caught = (promise: Promise<unknown>): Promise<RpcError> =>
  comes(
    promise.then(
      () => Promise.reject(new Error('the call was answered')),
      (error: RpcError) => error,
    ),
    'the end of a call',
  );
