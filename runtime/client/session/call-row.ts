/**
 * A call slot of a session and the call in it, as one object that is reused for the next call. A single
 * object keeps the data together, so that the first call after a silence of its session loads only two cache
 * lines. If each value had an array of its own, a call would load two cache lines for each of a dozen arrays.
 * A ClientSession owns this object and uses it on its JS thread.
 */
import type { Resolve } from '../../core/errors/failing.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras } from './call-extras.ts';

export class CallRow {
  /** The call slot. */
  readonly call: number;
  /** The method of the last call. A call is in flight when `resolve` is set. */
  method: ClientMethod | undefined = undefined;
  /** The request is kept in case the call must be sent again because it was not processed. */
  request: unknown = undefined;
  resolve: Resolve | undefined = undefined;
  extras: CallExtras | undefined = undefined;
  /** The batch of events in or after which the call began. */
  batch = 0;
  givenUp = false;
  /** The bytes of arena memory that a cancelled call waited for. */
  awaitedBytes = 0;
  /** Absolute deadline in milliseconds, or 0 for no deadline. */
  deadlineMs = 0;
  /**
   * The turn (deadlines.ts) in which the entry last got a deadline. `deadlineBefore` is the entry that got
   * its deadline before this entry in the same turn (CallDeadlines).
   */
  deadlineTurn = -1;
  deadlineBefore: CallRow | undefined = undefined;
  /** The next entry in ClientSession's list of free entries. */
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
