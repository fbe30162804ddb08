/** What a stream on the server knows of all that its session has: a ServerStreams. */

import type { Submission } from '../../boundary/outgoing/submission.ts';
import type { IncomingParts } from '../../stream/incoming-parts.ts';
import type { StalledStream, StalledStreams } from '../../stream/stalled-streams.ts';
import type { Shared } from '../server-session.ts';

/** A stream as the table has it. */
export interface TableStream extends StalledStream {
  readonly number: number;
}

export interface StreamTable {
  readonly session: Shared;
  readonly incoming: IncomingParts;
  /** What goes out with a part that has messages. */
  readonly submission: Submission;
  /** Streams whose parts found no send slot, or no memory. */
  readonly stalled: StalledStreams;
  /** The credit for a PUSH. */
  answerPush(handle: number): void;
  /** Nothing comes for this PULL: nothing at all, or (flags 0) not yet. */
  answerPull(handle: number, stream: number, sequence: number, flags?: number): void;
  /** The stream is over. */
  leave(stream: TableStream): void;
  /** A stream is over, and its handler has come to its end. */
  onHandlerDone(): void;
}
