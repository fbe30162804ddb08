/**
 * A call that no handler has seen, with everything that is needed to send it or to send it again. The channel
 * passes it to the queue, and a lost session passes it back to the queue. A call that is sent at once has no
 * such object, because its parts are arguments of `ClientSession.start`.
 */

import type { Resolve } from '../../core/errors/failing.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras } from '../session/call-extras.ts';

export interface Unsent {
  readonly method: ClientMethod;
  readonly request: unknown;
  /** Absolute deadline in milliseconds, or 0 for no deadline. */
  readonly deadlineMs: number;
  readonly extras: CallExtras | undefined;
  readonly resolve: Resolve;
}
