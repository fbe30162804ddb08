/**
 * The queue of a channel's unsent calls, as its connections use it; the channel passes it to each session. On
 * the channel's JS thread.
 */
import type { FabricContext } from '../../boundary/fabric-context.ts';
import type { Unsent } from './unsent.ts';

export interface CallQueue {
  /** Number of waiting unary calls; read on the hot path. */
  readonly waiting: { readonly size: number };
  /** A call slot or a send slot may be free: sends waiting calls as long as there is room. */
  pump(): void;
  /** Does the same once, at the end of the current batch of events of `context`. */
  pumpAfter(context: FabricContext): void;
  /**
   * Called for a call that no handler has seen. Returns true when the queue sends it once more, and so owns
   * its promise. `rejected` says that the server has refused the connection; then a call with `waitForReady`
   * waits for the next one, however often that happens.
   */
  requeue(call: Unsent, rejected?: boolean): boolean;
  /**
   * Called for a call whose request found no room for this number of bytes in the arena. Returns true when
   * the queue sends it later, and so owns its promise.
   */
  awaitMemory(call: Unsent, context: FabricContext, bytes: number): boolean;
}
