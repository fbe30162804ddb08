/**
 * A call slot of a session, and the call in it: one object with all of it, kept for the next one. Together,
 * so that a call of a session that has been silent brings two lines into the cache, and not two for each of a
 * dozen arrays. Owned by a ClientSession, on its JS thread.
 */
import type { Resolve } from '../../core/errors/failing.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras } from './call-extras.ts';

export class CallRow {
  /** The call slot. */
  readonly call: number;
  /** Of the last call; whether there is one under way says `resolve`. */
  method: ClientMethod | undefined = undefined;
  /** Kept for a call that has to be made again because it was not sent. */
  request: unknown = undefined;
  resolve: Resolve | undefined = undefined;
  extras: CallExtras | undefined = undefined;
  /** Batch of events that the call was begun in or after. */
  batch = 0;
  givenUp = false;
  /** Of a call given up: bytes of the arena that it was waiting for. */
  awaitedBytes = 0;
  /** Absolute, ms; 0: none. */
  deadlineMs = 0;
  /** Turn that a deadline was last given in, and whose was given before in the same turn (CallDeadlines). */
  deadlineTurn = -1;
  deadlineBefore: CallRow | undefined = undefined;
  /** Without a call: see ClientSession. */
  nextFree: CallRow | undefined = undefined;

  constructor(call: number) {
    this.call = call;
  }

  /** The call is over. */
  empty(): void {
    this.request = undefined;
    this.resolve = undefined;
    this.extras = undefined;
    this.givenUp = false;
    this.deadlineMs = 0;
  }
}
