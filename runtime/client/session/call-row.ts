/**
 * A call slot of a session and the call in it, as one object that is reused for the next call. A single
 * object keeps the data together: a call of a session that has been silent loads two cache lines, not two for
 * each of a dozen arrays. Owned by a ClientSession, on its JS thread.
 */
import type { Resolve } from '../../core/errors/failing.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras } from './call-extras.ts';

export class CallRow {
  /** The call slot. */
  readonly call: number;
  /** Belongs to the last call; `resolve` says whether a call is in flight. */
  method: ClientMethod | undefined = undefined;
  /** Kept in case the call must be sent again because it was not processed. */
  request: unknown = undefined;
  resolve: Resolve | undefined = undefined;
  extras: CallExtras | undefined = undefined;
  /** The batch of events in or after which the call began. */
  batch = 0;
  givenUp = false;
  /** For a cancelled call: the bytes of arena memory for which it was waiting. */
  awaitedBytes = 0;
  /** Absolute deadline in milliseconds; 0 for none. */
  deadlineMs = 0;
  /**
   * The turn (deadlines.ts) in which the entry last got a deadline, and the entry that got one before it in
   * the same turn (CallDeadlines).
   */
  deadlineTurn = -1;
  deadlineBefore: CallRow | undefined = undefined;
  /** Next free entry; see ClientSession. */
  nextFree: CallRow | undefined = undefined;

  constructor(call: number) {
    this.call = call;
  }

  /** Clears the entry when the call has ended. */
  empty(): void {
    this.request = undefined;
    this.resolve = undefined;
    this.extras = undefined;
    this.givenUp = false;
    this.deadlineMs = 0;
  }
}
