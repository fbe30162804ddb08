/**
 * A retryable call: one that no handler has seen, with everything that is needed to send it, or to send it
 * again. Passed from the channel to its queue, and from a lost session back to the queue. A call that is sent
 * at once has no such object: its parts are arguments of `ClientSession.start`.
 */

import type { Resolve } from '../../core/errors/failing.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras } from '../session/call-extras.ts';

export interface Unsent {
  readonly method: ClientMethod;
  readonly request: unknown;
  /** Absolute deadline in milliseconds; 0 for none. */
  readonly deadlineMs: number;
  readonly extras: CallExtras | undefined;
  readonly resolve: Resolve;
}
