/**
 * A call that no handler has seen, with all that is needed to make it, or to make it again. Handed from the
 * channel to its queue, and from a session that is lost back to it. A call that goes out at once has none:
 * there its parts are arguments of `ClientSession.start`.
 */

import type { Resolve } from '../../core/errors/failing.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras } from '../session/call-extras.ts';

export interface Unsent {
  readonly method: ClientMethod;
  readonly request: unknown;
  /** Absolute, ms; 0: none. */
  readonly deadlineMs: number;
  readonly extras: CallExtras | undefined;
  readonly resolve: Resolve;
}
