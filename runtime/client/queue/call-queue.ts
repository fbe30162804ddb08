/**
 * The calls of a channel that have not been sent, as its connections know them: one queue, handed down from
 * the channel to each session. On the channel's JS thread.
 */
import type { FabricContext } from '../../boundary/fabric-context.ts';
import type { Unsent } from './unsent.ts';

export interface CallQueue {
  /** Unary calls that wait; read on the hot path. */
  readonly waiting: { readonly size: number };
  /** A call slot or a send slot may be free: sends what waits, as far as there is room. */
  pump(): void;
  /** The same for all calls that end in one batch of events of `context`, when that is over. */
  pumpAfter(context: FabricContext): void;
  /**
   * No handler has seen the call. Returns true when the queue makes it once more, and so owns its promise.
   * `turnedAway`: the server has refused the connection, so a call with `waitForReady` waits for the next
   * one, however often that happens.
   */
  requeue(call: Unsent, turnedAway?: boolean): boolean;
  /**
   * Its request found no room for so many bytes in the arena, and there may be some later: true when the
   * queue sends it then, and so owns its promise.
   */
  awaitMemory(call: Unsent, context: FabricContext, bytes: number): boolean;
}
