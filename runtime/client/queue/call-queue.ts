/**
 * The functions of a channel's queue of unsent calls that its connections use. The channel passes the queue
 * to each session. This file runs on the channel's JS thread.
 */
import type { FabricContext } from '../../boundary/fabric-context.ts';
import type { Unsent } from './unsent.ts';

export interface CallQueue {
  /** `size` is the number of waiting unary calls. The hot path reads it. */
  readonly waiting: { readonly size: number };
  /** Sends waiting calls as long as there is room. Runs when a call slot or a send slot may be free. */
  pump(): void;
  /** Calls `pump` once, at the end of the current batch of events of `context`. */
  pumpAfter(context: FabricContext): void;
  /**
   * Runs for a call that no handler has seen. Returns true when the queue will send the call once more; the
   * queue then owns the promise of the call. `rejected` says that the server has refused the connection. A
   * call with `waitForReady` then waits for the next connection, even after several refusals.
   */
  requeue(call: Unsent, rejected?: boolean): boolean;
  /**
   * Runs for a call whose request found no room for `bytes` bytes in the arena. Returns true when the queue
   * will send the call later; the queue then owns the promise of the call.
   */
  awaitMemory(call: Unsent, context: FabricContext, bytes: number): boolean;
}
