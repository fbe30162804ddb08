/** What a stream on the server knows of all that its session has: a ServerStreams. */

import type { Submission } from '../../boundary/outgoing/submission.ts';
import type { IncomingParts } from '../../stream/incoming-parts.ts';
import type { Shared } from '../server-session.ts';

/** A stream as the table has it. */
export interface TableStream {
  readonly number: number;
  /** There may be a send slot, or memory, for what found none. */
  retry(): void;
}

export interface StreamTable {
  readonly session: Shared;
  readonly incoming: IncomingParts;
  /** What goes out with a part that has messages. */
  readonly submission: Submission;
  /** The credit for a PUSH. */
  answerPush(handle: number): void;
  /** Nothing comes for this PULL: nothing at all, or (flags 0) not yet. */
  answerPull(handle: number, stream: number, sequence: number, flags?: number): void;
  /** The stream found no send slot, and is tried again when there is one. */
  awaitSlot(stream: TableStream): void;
  /** The stream is tried again when memory is back. Returns false when none will come by itself. */
  awaitMemory(stream: TableStream): boolean;
  /** A part of the stream has been sent. */
  partSent(stream: TableStream): void;
  /** The stream is over. */
  leave(stream: TableStream): void;
  /** A stream is over, and its handler has come to its end. */
  onHandlerDone(): void;
}
