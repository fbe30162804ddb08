/** What tests of calls wait for: a turn of the event loop, a condition, the error that a call ends with. */
import type { RpcError } from 'rdma-rpc';

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

/** The error that a call ends with. */
export const caught = (promise: Promise<unknown>): Promise<RpcError> =>
  promise.then(
    () => Promise.reject(new Error('the call was answered')),
    (error: RpcError) => error,
  );
